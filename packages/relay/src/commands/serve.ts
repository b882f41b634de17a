import { setFlagsFromString } from 'node:v8';
import type { Command } from 'commander';
import { configFrom, type Flags, withConfig } from './config-flags.ts';
import { readyLine } from './ready-line.ts';

/** Completes `posthouse serve`. */
export function configure(command: Command): void {
  withConfig(command).action(serve);
}

/** Runs until SIGTERM or SIGINT; the process then ends by itself. */
async function serve(options: Flags): Promise<void> {
  const { config } = configFrom(options);
  const stopping = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => stopping.abort());
  }
  // V8 returns the young generation of an idle process only after much work. Loading and starting
  // would grow it to 14 MiB, so it grows from when the relay has started.
  setFlagsFromString('--semi-space-growth-factor=1');
  const { Relay } = await import('../relay.ts');
  const relay = await Relay.start(config, { signal: stopping.signal });
  setFlagsFromString('--semi-space-growth-factor=2');
  process.stdout.write(`${readyLine(relay)}\n`);
  await relay.closed;
}
