"""What an operation does to bytes: mbarriers, barriers, reductions, tensor maps and copies; concretely and as terms."""
