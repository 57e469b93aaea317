"""Where is each access served?"""
