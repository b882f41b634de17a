import type { Command } from 'commander';
import { Relay } from '../relay.ts';
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
  const relay = await Relay.start(config, { signal: stopping.signal });
  process.stdout.write(`${readyLine(relay)}\n`);
  await relay.closed;
}
