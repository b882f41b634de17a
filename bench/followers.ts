/**
 * Followers of a channel for `fan-out.ts`, a process of its own: it opens the connections it is
 * told, of one account, and says when the last of those that read has heard of a head.
 */
import { setPriority } from 'node:os';
import { loadTarget, TestContext, type WssCaller } from '@posthouse/conformance';

export interface FollowersOrder {
  readonly target: Parameters<typeof loadTarget>[0];
  readonly channel: string;
  readonly count: number;
  /** How many of them never read again once they subscribed. */
  readonly silent: number;
}

/** What it says: first that all are there, then for each head when the last one heard of it. */
export type FollowersReport =
  | { readonly kind: 'ready' }
  | { readonly kind: 'heard'; readonly head: number; readonly at: number };

/** Milliseconds of the clock that all processes of a machine share. */
export function machineTime(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Connections that are opened at once. */
const together = 20;

/** Below the relay and whoever measures: the machine's cores are no part of what is measured. */
const niceness = 10;

async function follow({ target: facts, channel, count, silent }: FollowersOrder): Promise<void> {
  const target = await loadTarget(facts);
  await using context = await TestContext.open(target, 'wss');
  const account = context.account();
  const device = await account.device();
  await context.register(account, [device]);
  const callers: WssCaller[] = [];
  const open = async () => {
    const caller = await context.wss();
    await context.authenticateDevice(caller, device);
    await context.expectOk(caller, 'channel.subscribe', { channel_ids: [channel] });
    callers.push(caller);
  };
  for (let left = count; left > 0; left -= together) {
    await Promise.all(Array.from({ length: Math.min(left, together) }, open));
  }
  const heads = new Map<number, number>();
  for (const [index, { socket }] of callers.entries()) {
    if (index < silent) socket.pause(true);
    else {
      socket.listen((text) => {
        const head = Number(/"head":([0-9]+)/.exec(text)?.[1]);
        const heard = (heads.get(head) ?? 0) + 1;
        heads.set(head, heard);
        if (heard === count - silent) say({ kind: 'heard', head, at: machineTime() });
      });
    }
  }
  const over = new Promise((resolve) => process.once('disconnect', resolve));
  say({ kind: 'ready' });
  await over;
}

function say(report: FollowersReport): void {
  process.send?.(report);
}

if (process.send !== undefined) {
  setPriority(niceness);
  const order = await new Promise<FollowersOrder>((resolve) => {
    process.once('message', (message) => resolve(message as FollowersOrder));
  });
  await follow(order);
}
