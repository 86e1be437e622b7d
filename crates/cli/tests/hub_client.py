"""The hub's own package beside `motley`, in one cache: each finds what the other fetched.

hub_client.py find REPO FILE    the file `motley pull` fetched, without the network
hub_client.py fetch REPO FILE   a file for `motley list` to find
"""
import sys

from huggingface_hub import hf_hub_download, scan_cache_dir

what, repo, file = sys.argv[1:]
print(hf_hub_download(repo, file, local_files_only=what == "find"))
cache = scan_cache_dir()
assert not cache.warnings, cache.warnings
assert repo in {found.repo_id for found in cache.repos}, cache
