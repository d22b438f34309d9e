"""The playground, mcheck in a browser: ``build`` assembles its folder, ``answers`` serves its worker."""
