"""context_management"""
