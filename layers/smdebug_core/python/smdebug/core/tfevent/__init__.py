"""For code written against smdebug that writes or reads event files itself."""
