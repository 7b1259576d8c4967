"""The experiments as files that anybody can read, and what such a file may say."""
