"""How a holder learns that its lock is lost: `python3 -m unittest`, without a cluster."""

import time
import unittest

from remora.gateways import now
from remora.lock import Lost


class LostTest(unittest.TestCase):
    def test_the_clock_alone_tells_that_it_is_lost(self) -> None:
        lost = Lost()
        lost.extend(now() + 0.05)
        time.sleep(0.06)  # as if the process was paused: no other thread has run
        self.assertTrue(lost.is_set())
        self.assertEqual(lost.remaining(), 0.0)
        self.assertEqual(lost.reason, "it could not be renewed in time")

    def test_a_late_renewal_does_not_bring_it_back(self) -> None:
        lost = Lost()
        lost.extend(now() + 0.05)
        time.sleep(0.06)
        lost.extend(now() + 60)
        self.assertTrue(lost.is_set())

    def test_renewals_extend_it_and_never_shorten_it(self) -> None:
        lost = Lost()
        lost.extend(now() + 120)
        lost.extend(now() + 60)
        self.assertFalse(lost.is_set())
        self.assertGreater(lost.remaining(), 60)

    def test_a_waiter_wakes_when_the_time_is_over(self) -> None:
        lost = Lost()
        lost.extend(now() + 0.05)
        self.assertTrue(lost.wait())
        self.assertTrue(lost.wait(0))

    def test_the_first_reason_stays(self) -> None:
        lost = Lost()
        lost.extend(now() + 60)
        lost.end("it was released")
        lost.end("another reason")
        self.assertTrue(lost.is_set())
        self.assertEqual(lost.reason, "it was released")


if __name__ == "__main__":
    unittest.main()
