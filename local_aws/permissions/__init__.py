"""Who may do what: the permissions that a request needs, and the policies that grant them."""
