"""What a campaign is made of: experiments, arms, launches, cells. Imports no other room."""
