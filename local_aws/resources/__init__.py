"""How each type of resource in the template is created in moto, one module per group of types."""
