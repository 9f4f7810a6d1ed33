"""The client of the Model Context Protocol: servers of others, whose tools are tools of ours."""
