"""The prompt: editor, history, completion, pastes and drafts."""
