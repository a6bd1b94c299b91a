-- By "hotset" session_cpu.sql knows this session; its program's name tells others who it is.
SET CONTEXT_INFO 0x686F74736574
