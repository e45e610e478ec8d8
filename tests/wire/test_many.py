"""Two servers on one file, four client threads each: nothing is lost, every call leaves its row."""

from concurrent.futures import ThreadPoolExecutor

from tests.wire.mixed import Shared, check, work
from tests.wire.process import REAL, Process

THREADS = 4
CALLS = 250  # of each thread


def test_two_servers_and_eight_threads_lose_nothing(environment, database):
    with (
        Process(*REAL, environment=environment) as one,
        Process(*REAL, environment=environment) as other,
        ThreadPoolExecutor(2 * THREADS) as threads,
    ):
        servers = [Shared(one), Shared(other)]
        done = [
            threads.submit(work, server, f"{number}-{thread}", CALLS)
            for number, server in enumerate(servers)
            for thread in range(THREADS)
        ]
        results = [result.result() for result in done]
        for server in servers:
            server.close()
        assert [one.wait(), other.wait()] == [0, 0]
    assert check(database, results) == 2 * THREADS * CALLS
