"""The message bus: envelope, vocabulary, endpoint, reliable streams, access, client."""
