"""The command line: each verb parses its options, calls the API and prints the result."""
