import torch

from aflite.lanes import lanes

CPU = torch.device("cpu")


def test_results_come_in_task_order_for_any_number_of_workers():
    for threads in (1, 3):
        with lanes(threads, CPU) as workers:
            assert workers.map(lambda index: index * index, 50) == [index * index for index in range(50)]


def test_torch_gets_its_threads_back():
    before = torch.get_num_threads()
    with lanes(2, CPU), lanes(1, CPU) as inner:
        assert torch.get_num_threads() == 1
        assert inner.map(lambda _: torch.get_num_threads(), 1) == [1]
    assert torch.get_num_threads() == before


def workers_of(threads):
    with lanes(threads, CPU) as opened:
        return 1 if opened.pool is None else opened.pool._max_workers


def test_number_of_workers_is_the_one_asked_for_or_torch_s():
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        assert [workers_of(threads) for threads in (1, 2, None)] == [1, 2, 3]
    finally:
        torch.set_num_threads(before)
