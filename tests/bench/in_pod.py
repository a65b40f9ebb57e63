"""`python -m tests.bench.in_pod FOLDER ARGUMENTS`: start as in a pod, with the files of a ServiceAccount in FOLDER."""

import sys
from pathlib import Path

from virt_steward.cli.main import main
from virt_steward.kube.kubeconfig import load_kubeconfig

if __name__ == "__main__":
    folder, sys.argv[1:] = Path(sys.argv[1]), sys.argv[2:]
    load_kubeconfig.__kwdefaults__["service_account"] = folder
    main()
