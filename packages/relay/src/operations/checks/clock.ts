import { readClockMark } from '../../storage/clock-mark.ts';
import { type Check, failed, ok, warning } from './check.ts';

/** Seconds by which the clock may be before the mark: it is corrected by as much now and then. */
const tolerated = 5;

const instant = (seconds: number) => new Date(seconds * 1_000).toISOString().replace('.000', '');

/** Whether the clock is before the last time at which the relay ran, or far after it. */
export const clock: Check = {
  name: 'clock',
  scope: 'local',
  needs: ['database'],
  cure: 'try again',
  async find(relay) {
    const mark = await (await relay.storage).read(readClockMark);
    const now = relay.clock.now();
    if (mark === undefined) return ok(`${instant(now)}; the relay has not run yet`);
    const ahead = now - mark.seenAt;
    const seen = `${instant(now)}, and the relay ran at ${instant(mark.seenAt)}`;
    if (ahead < -tolerated) {
      return failed(
        `${seen}: the clock was set back by ${-ahead} seconds`,
        "set the machine's clock right, and keep it right with NTP",
      );
    }
    if (ahead <= relay.limits.clockJump) return ok(seen);
    return warning(
      `${seen}: after so long, nothing is deleted for a day, since the clock may be wrong`,
      'if the clock is right, run `posthouse clock accept` to end that at once',
    );
  },
};
