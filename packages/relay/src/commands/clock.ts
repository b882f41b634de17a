/** `posthouse clock`: whether the clock is trusted, and accepting it. */
import type { Command } from 'commander';
import { systemClock } from '../clock.ts';
import { putClockMark, readClockMark } from '../storage/clock-mark.ts';
import { asksStorage, configAndFlags, subcommand, withStorage } from './storage-command.ts';
import { instant, print } from './terminal-output.ts';

const help = `
A relay whose clock is more than a day ahead of its last mark deletes nothing for 24 hours: the clock
may be wrong, and what is deleted too early is lost. The mark is written every minute while the relay
runs, so a relay that was stopped for more than a day pauses too. Set the clock right if it is wrong;
if it is right, accept it.

The command works whether the relay runs or not; a running relay deletes again within a minute.

Exit status: 0 done, 1 failed, 2 wrong arguments or configuration.

Examples:
  posthouse clock show --config relay.json
  posthouse clock accept --config relay.json`;

/** Completes `posthouse clock`. */
export function configure(command: Command): void {
  asksStorage(command)
    .enablePositionalOptions()
    .addHelpText('after', help)
    .action((_, of: Command) => of.help({ error: true }))
    .addCommand(subcommand('show', 'print the clock and the last mark').action((_, of) => show(of)))
    .addCommand(subcommand('accept', 'end the pause of deleting').action((_, of) => accept(of)));
}

async function show(of: Command): Promise<void> {
  const { config } = configAndFlags(of);
  const mark = await withStorage(config, (storage) => storage.read(readClockMark));
  const now = systemClock.now();
  const isAhead = mark !== undefined && now - mark.seenAt > config.limits.clockJump;
  print([
    `clock      ${instant(now)}`,
    `last mark  ${mark === undefined ? 'none' : instant(mark.seenAt)}`,
    `deleting   ${isAhead ? `paused until ${instant(mark.pausedUntil ?? now + config.limits.clockPause)}` : 'on'}`,
  ]);
}

async function accept(of: Command): Promise<void> {
  const { config } = configAndFlags(of);
  const now = systemClock.now();
  await withStorage(config, (storage) =>
    storage.write('relay', (tx) => putClockMark(tx, { seenAt: now })),
  );
  print([`the clock is accepted: ${instant(now)}`]);
}
