"""Pictures and animations of tensors."""
