"""The texts of the skill `vibearound`, one per way in which an agent takes them."""
