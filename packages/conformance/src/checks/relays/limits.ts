/** Resource control between relays (07 §C9). */
import { setTimeout } from 'node:timers/promises';
import { assertConforms, assertEqual, NotApplicable } from '../../assert.ts';
import { relayChecksOf } from './common.ts';

const limits = relayChecksOf('rpc.limits');

/** Requests after which a relay without a limit is assumed to have none that a check can meet. */
const most = 3_000;
const atOnce = 32;

limits.check(
  'rate-limited',
  {
    source: '07 §C9',
    title: 'answers requests above a quota with rate_limited, and serves them after retry_after',
  },
  async (context) => {
    const { account, device } = await context.testAccount();
    const connection = await (await context.seat()).connect();
    const params = { account: account.id, device_id: device.id };
    const waits: (number | undefined)[] = [];
    for (let sent = 0; sent < most && waits.length === 0; sent += atOnce) {
      const batch = Array.from({ length: atOnce }, () =>
        connection.callOnce('device.status', params),
      );
      for (const response of await Promise.all(batch)) {
        assertConforms(response.kind !== 'invalid', 'every request gets a valid response');
        if (response.kind === 'result') continue;
        assertEqual(response.code, 'rate_limited', 'code of a request above a quota');
        waits.push(response.retryAfter);
      }
    }
    if (waits.length === 0) {
      throw new NotApplicable(`the relay limits no ${most} requests about one account`);
    }
    const wait = Math.max(...waits.map((seconds) => seconds ?? 1));
    if (wait > 60) throw new NotApplicable(`the relay asks to wait for ${wait} s`);
    await setTimeout(wait * 1_000);
    const { status } = await connection.expectResult('device.status', params);
    assertEqual(status, 'active', 'the answer after the wait');
  },
);

export const relayLimitChecks = limits.list;
