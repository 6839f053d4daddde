"""Commands for those who come from SageMaker Debugger."""
