"""Reports in the shapes that profilers print, written for the tests."""

from __future__ import annotations

WIDE = """==PROF== Connected to process 4242 (/home/me/saxpy)
max error 0.0, "quoted, text"
==PROF== Profiling "saxpy" - 0: 0%....50%....100% - 8 passes
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC",\
"gpu__time_duration.sum","smsp__cycles_elapsed.avg.per_second","smsp__inst_executed.sum","dram__bytes_read.sum",\
"l1tex__t_sector_hit_rate.pct","launch__func_cache_config"
"","","","","","","","","","","","usecond","cycle/nsecond","inst","Mbyte","%",""
"0","4242","saxpy","127.0.0.1","saxpy(int, float, const float *, float *)","1","7","(256, 1, 1)","(65536, 1, 1)",\
"0","7.5","456.70","1.35","7,864,320","134.22","0","CachePreferNone"
"1","4242","saxpy","127.0.0.1","void ns::scale<float, 4>(T1 *, int)","1","7","(32, 4, 1)","(10, 2, 1)","0","7.5",\
"3.20","1.35","1,234","n/a","12.50","CachePreferNone"
==PROF== Disconnected from process 4242
"""

LONG_2019 = """==PROF== Target process 77 terminated before first instrumented API call.
"ID","Process ID","Process Name","Host Name","Kernel Name","Kernel Time","Context","Stream","Section Name",\
"Metric Name","Metric Unit","Metric Value"
"0","77","a.out","box","saxpy","2019-Jul-03 10:11:12","1","7","GPU Speed Of Light","Duration","msecond","1.5"
"0","77","a.out","box","saxpy","2019-Jul-03 10:11:12","1","7","GPU Speed Of Light","SM Frequency","Ghz","1.35"
"0","77","a.out","box","saxpy","2019-Jul-03 10:11:12","1","7","Launch Statistics","Registers Per Thread",\
"register/thread","16"
"0","77","a.out","box","saxpy","2019-Jul-03 10:11:12","1","7","Instruction Statistics","Executed Instructions","inst",\
"7,864,320"
"0","77","a.out","box","saxpy","2019-Jul-03 10:11:12","1","7","Memory","Memory Throughput","Gbyte/second","512.5"
"0","77","a.out","box","saxpy","2019-Jul-03 10:11:12","1","7","Memory","Memory Throughput","%","83.2"
"""

LONG_RULES = """"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size",\
"Device","CC","Section Name","Metric Name","Metric Unit","Metric Value","Rule Name","Rule Type","Rule Description",\
"Estimated Speedup Type","Estimated Speedup"
"0","9","app","h","saxpy(int, float, const float *, float *)","1","7","(256, 1, 1)","(65536, 1, 1)","0","8.0",\
"GPU Speed Of Light Throughput","Duration","us","130.4","","","","",""
"0","9","app","h","saxpy(int, float, const float *, float *)","1","7","(256, 1, 1)","(65536, 1, 1)","0","8.0",\
"SpeedOfLight","","","","SOLBottleneck","OPT","Memory is more heavily utilized than Compute.","global","12.5"
"0","9","app","h","saxpy(int, float, const float *, float *)","1","7","(256, 1, 1)","(65536, 1, 1)","0","8.0",\
"SpeedOfLight","","","","Short","WRN","A rule with
a line break"
"0","9","app","h","saxpy(int, float, const float *, float *)","1","7","(256, 1, 1)","(65536, 1, 1)","0","8.0",\
"Memory Workload Analysis","L2 Hit Rate","%","33.3","","","","",""
"""

ROCPROF = """"Index","KernelName","gpu-id","queue-id","queue-index","pid","tid","grd","wgr","lds","scr",\
"arch_vgpr","sgpr","wave_size","SQ_INSTS","DurationNs"
0,"saxpy.kd",0,0,0,100,100,16777216,256,0,0,8,16,64,2621440,151234
"""
