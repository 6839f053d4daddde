"""For code written against smdebug: the messages are in `smdebug.files.proto`."""
