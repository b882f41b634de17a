import type { Command } from 'commander';
import type { Relay } from '../relay.ts';
import { coalesced } from './coalesced.ts';
import { configFrom, type Flags, withConfig } from './config-flags.ts';
import {
  boundBufferPools,
  boundYoungGeneration,
  countExternalBytesInHeap,
  letYoungGenerationGrow,
  lowerHelperThreads,
} from './garbage-collection.ts';
import { readyLine } from './ready-line.ts';

const help = `
SIGTERM and SIGINT stop the relay in order; more of them change nothing. SIGHUP reads the configuration again: certificate files,
trusted proxies, most limits, registry and blocks; the log names the settings that need a restart. If
the new configuration cannot be used, the one before stays in force, and the log says why. SIGUSR1 does
nothing.

Example:
  posthouse serve --config relay.json`;

/** Completes `posthouse serve`. */
export function configure(command: Command): void {
  withConfig(command).addHelpText('after', help).action(serve);
}

/** Runs until SIGTERM or SIGINT; the process then ends by itself. */
async function serve(options: Flags): Promise<void> {
  const { config } = configFrom(options);
  const stopping = new AbortController();
  // Ctrl+C in a terminal may arrive twice, once passed on by npm: the second must not end the process
  // before it has answered what is under way.
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => stopping.abort());
  }
  const started = Promise.withResolvers<Relay>();
  // A start that fails ends the process, and reloads nothing.
  started.promise.catch(() => {});
  reloadAtSignals(options, started.promise);
  // V8 returns the young generation of an idle process only after much work. Loading and starting
  // would grow it to 14 MiB, so it grows from when the relay has started.
  letYoungGenerationGrow(false);
  boundBufferPools();
  const { Relay: relays } = await import('../relay.ts');
  const relay = await relays.start(config, { signal: stopping.signal });
  boundYoungGeneration();
  countExternalBytesInHeap();
  lowerHelperThreads();
  process.stdout.write(`${readyLine(relay)}\n`);
  started.resolve(relay);
  await relay.closed;
}

/** Has the relay take over the configuration at SIGHUP, once it runs; signals meanwhile are one. */
function reloadAtSignals(options: Flags, started: Promise<Relay>): void {
  const reload = coalesced(async () => {
    const relay = await started.catch(() => undefined);
    await relay?.reloadOr(() => configFrom(options).config);
  });
  process.on('SIGHUP', reload);
}
