"""The ``probesieve`` command line: parses, makes one library call, says where the result is."""
