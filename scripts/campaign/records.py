"""Records that a database might write, as programs for `python3 -c`: each is written with fsync and
then acknowledged, and read again to see whether all that were are there.

Standard library only: bare systems have no more.
"""

SLOTS = 512
"""Records lie in turn in so many places: an older one in the place of a newer one is found."""
_RECORD = """
import hashlib, os, sys
SIZE, SLOTS = 4096, int(sys.argv[2])
def record(number):
    body = (b"%d " % number * SIZE)[: SIZE - 32]
    return hashlib.sha256(body).digest() + body
"""
WRITE = f"""{_RECORD}
file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
for line in sys.stdin:
    try:
        os.pwrite(file, record(int(line)), int(line) % SLOTS * SIZE)
        os.fsync(file)
        print(int(line), flush=True)
    except OSError as error:
        print(error, flush=True)
"""
"""Arguments: file, :data:`SLOTS`. Takes numbers, a line each; prints each that was written."""
MISSING = f"""{_RECORD}
acknowledged, lost = int(sys.argv[3]), []
with open(sys.argv[1], "rb") as file:
    for slot in range(SLOTS):
        found = file.read(SIZE)
        said = found[32:].partition(b" ")[0]
        whole = said.isdigit() and found == record(int(said))
        number = int(said) if whole else -1
        last = acknowledged - 1 - (acknowledged - 1 - slot) % SLOTS
        # The one that was on its way when the power went may be there, or a part of it.
        is_under_way = slot == acknowledged % SLOTS
        if number not in ((last, last + SLOTS, -1) if is_under_way else (last,)) and last >= 0:
            lost.append(f"{{last}} (there is {{number if whole else 'none that is whole'}})")
if lost:
    print(f"{{len(lost)}} acknowledged records lack: {{', '.join(lost[:5])}}")
"""
"""Arguments: file, :data:`SLOTS`, how many were acknowledged. Prints which of them are not there;
nothing if all are."""
