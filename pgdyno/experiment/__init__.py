"""From a question to stored trials: policies decide, phases name the parts, the runner acts."""
