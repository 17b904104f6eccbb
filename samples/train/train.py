#!/usr/bin/python3
"""Trains the sample model: corpus, tokenizer, weights.

    /usr/bin/python3 train.py --work DIR

DIR receives tokenizer.json, checkpoint.pt (every 250 steps, used to go on after
a stop) and log.txt.  The batch of a step depends on the seed and the step
number alone, and the learning rate before the cool-down does not depend on the
last step, so a run that was stopped and resumed gives the weights of a run that
was not.  export.py turns the checkpoint into samples/model.
"""

import argparse
import math
import os
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "2")  # read when torch is imported
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # spinning collapses on a busy machine
os.environ.setdefault("GOMP_SPINCOUNT", "0")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

import bpe  # noqa: E402
import corpus  # noqa: E402
from model import CONFIG, Llama, greedy  # noqa: E402

SEED = 20240229
STEPS = 3750
WARM_UP = 200
COOL_DOWN = 2000          # the last steps: half a cosine from PEAK_RATE to LAST_RATE
PEAK_RATE, LAST_RATE = 2e-3, 1e-4
BATCH = 8
CONTEXT = CONFIG["max_position_embeddings"]
BIBLE_SHARE = 0.7         # about its share of the tokens
PARAGRAPH_SHARE = 0.6     # sequences that start at a paragraph; the rest start anywhere
PROMPTS = ["In the beginning", "And the king said", "hacker: n.", "A program that"]


class Source:
    """One stream of ids: document eos bos document eos bos ..."""

    def __init__(self, documents, tokenizer):
        ids, self.paragraphs = [], []
        newline = tokenizer.encode_text("\n")[0]
        for document in documents:
            self.paragraphs.append(len(ids))
            for i in tokenizer.encode_text(document):
                if i != newline and ids[-2:] == [newline, newline]:
                    self.paragraphs.append(len(ids))
                ids.append(i)
            ids += [tokenizer.eos, tokenizer.bos]
        self.length = len(ids)
        self.ids = torch.tensor(ids + ids[:CONTEXT])

    def rows(self, starts, bos):
        body = torch.stack([self.ids[s:s + CONTEXT] for s in starts])
        return torch.cat([torch.full((len(starts), 1), bos), body], dim=1)


def batch_for(step, sources, bos):
    """Every row is bos and then CONTEXT ids of one stream."""
    generator = torch.Generator().manual_seed(SEED * 100003 + step)
    draws = torch.rand(BATCH, 3, generator=generator, dtype=torch.float64).tolist()
    rows = []
    for which, how, where in draws:
        source = sources["bible" if which < BIBLE_SHARE else "jargon"]
        if how < PARAGRAPH_SHARE:
            start = source.paragraphs[int(where * len(source.paragraphs))]
        else:
            start = int(where * source.length)
        rows.append(source.rows([start], bos))
    return torch.cat(rows)


def loss_of(model, rows, bos, reduction="mean"):
    logits = model(rows[:, :-1])
    targets = rows[:, 1:].reshape(-1)
    targets = targets.masked_fill(targets == bos, -100)  # after eos nothing is learnt
    return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets, ignore_index=-100,
                           reduction=reduction)


@torch.no_grad()
def evaluate(model, source, bos, windows=None):
    """Mean loss a token over the stream cut into windows, each after a bos."""
    starts = list(range(0, source.length, CONTEXT))
    if windows is not None and windows < len(starts):
        starts = starts[::len(starts) // windows][:windows]
    total, count = 0.0, 0
    for i in range(0, len(starts), BATCH):
        rows = source.rows(starts[i:i + BATCH], bos)
        total += float(loss_of(model, rows, bos, "sum"))
        count += int((rows[:, 1:] != bos).sum())
    return total / count


def rate_at(step, steps):
    if step < WARM_UP:
        return PEAK_RATE * (step + 1) / WARM_UP
    if step < steps - COOL_DOWN:
        return PEAK_RATE
    done = (step - (steps - COOL_DOWN)) / COOL_DOWN
    return LAST_RATE + (PEAK_RATE - LAST_RATE) * 0.5 * (1 + math.cos(math.pi * done))


def make_optimiser(model):
    matrices = [p for p in model.parameters() if p.dim() == 2]
    gains = [p for p in model.parameters() if p.dim() != 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": gains, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=PEAK_RATE, betas=(0.9, 0.98), eps=1e-9)


def load_tokenizer(path, training_documents):
    if not os.path.exists(path):
        bpe.Tokenizer(*bpe.train(training_documents, CONFIG["vocab_size"])).save(path)
    return bpe.Tokenizer.load(path)


def print_samples(model, tokenizer, log, count=48):
    for prompt in PROMPTS:
        ids = greedy(model, tokenizer.encode(prompt), count, tokenizer.eos)
        log("  | " + tokenizer.decode(ids).replace("\n", "\\n"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", required=True)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--time-budget", type=float, default=0.0,
                        help="minutes after which to save and stop, 0 for none")
    arguments = parser.parse_args()
    torch.set_num_threads(2)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(SEED)
    os.makedirs(arguments.work, exist_ok=True)
    begun = time.time()
    log_file = open(os.path.join(arguments.work, "log.txt"), "a", encoding="utf-8")

    def log(text):
        print(text, flush=True)
        log_file.write(text + "\n")
        log_file.flush()

    texts = corpus.load()
    tokenizer = load_tokenizer(os.path.join(arguments.work, "tokenizer.json"),
                               [d for training, _ in texts.values() for d in training])
    training = {name: Source(text[0], tokenizer) for name, text in texts.items()}
    held_out = {name: Source(text[1], tokenizer) for name, text in texts.items()}
    for name in texts:
        log("%s: %d training ids, %d validation ids" % (name, training[name].length,
                                                         held_out[name].length))
    model = Llama()
    optimiser = make_optimiser(model)
    log("parameters: %d" % sum(p.numel() for p in model.parameters()))

    checkpoint = os.path.join(arguments.work, "checkpoint.pt")
    first, spent = 0, 0.0
    if os.path.exists(checkpoint):
        state = torch.load(checkpoint)
        model.load_state_dict(state["model"])
        optimiser.load_state_dict(state["optimiser"])
        first, spent = state["step"], state["seconds"]
        log("resumed at step %d" % first)

    def save(step):
        state = {"model": model.state_dict(), "optimiser": optimiser.state_dict(),
                 "step": step, "seconds": spent + time.time() - begun}
        torch.save(state, checkpoint + ".new")
        os.replace(checkpoint + ".new", checkpoint)
        if step % 1000 == 0:
            torch.save(state, os.path.join(arguments.work, "step%05d.pt" % step))

    smoothed = None
    for step in range(first, arguments.steps):
        for group in optimiser.param_groups:
            group["lr"] = rate_at(step, arguments.steps)
        loss = loss_of(model, batch_for(step, training, tokenizer.bos), tokenizer.bos)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        value = float(loss.detach())
        smoothed = value if smoothed is None else 0.98 * smoothed + 0.02 * value
        done = step + 1
        elapsed = time.time() - begun
        if done % 50 == 0:
            log("step %d loss %.4f rate %.5f seconds %.0f, %.3f a step"
                % (done, smoothed, rate_at(step, arguments.steps), spent + elapsed,
                   elapsed / (done - first)))
        if done % 500 == 0:
            losses = ["%s %.4f" % (n, evaluate(model, s, tokenizer.bos, 48))
                      for n, s in held_out.items()]
            log("validation at step %d: %s" % (done, ", ".join(losses)))
            print_samples(model, tokenizer, log)
        if done % 250 == 0 or done == arguments.steps:
            save(done)
            if arguments.time_budget and elapsed > 60 * arguments.time_budget:
                log("time budget spent at step %d" % done)
                return
    for name in texts:
        log("final %s: training %.4f, validation %.4f"
            % (name, evaluate(model, training[name], tokenizer.bos, 256),
               evaluate(model, held_out[name], tokenizer.bos)))
    print_samples(model, tokenizer, log)
    log("seconds in all: %.0f" % (spent + time.time() - begun))


if __name__ == "__main__":
    main()
