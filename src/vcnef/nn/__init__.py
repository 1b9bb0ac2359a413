"""Parts of networks, each one idea; none knows about VCNeF. Leading axes are batch axes: `... s d` in and out."""
