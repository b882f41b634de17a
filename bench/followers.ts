/**
 * The follower process of `fan-out.ts`: opens connections of one account, subscribes each to a
 * channel, and reports when the last reading connection has the hint of a head.
 */
import { readdirSync } from 'node:fs';
import { setPriority } from 'node:os';
import { loadTarget, TestContext, type WssCaller } from '@posthouse/conformance';

export interface FollowersOrder {
  readonly target: Parameters<typeof loadTarget>[0];
  readonly channel: string;
  readonly count: number;
  /** Number of connections that read nothing after they subscribed. */
  readonly silent: number;
}

/** What the process sends: first `ready`, then for each head when the last hint arrived. */
export type FollowersReport =
  | { readonly kind: 'ready' }
  | { readonly kind: 'hint'; readonly head: number; readonly at: number };

/** Reads the clock that all processes of a machine share; milliseconds. */
export function machineTime(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Connections that are opened at once. */
const openedAtOnce = 20;

/** Lower priority than the relay and the measuring process, which share the machine's cores. */
const niceness = 19;

/** Gives all threads of this process that priority: on Linux each has its own. */
function yieldCores(): void {
  for (const thread of readdirSync('/proc/self/task')) setPriority(Number(thread), niceness);
}

async function follow({ target: options, channel, count, silent }: FollowersOrder): Promise<void> {
  const target = await loadTarget(options);
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
  for (let left = count; left > 0; left -= openedAtOnce) {
    await Promise.all(Array.from({ length: Math.min(left, openedAtOnce) }, open));
  }
  const heads = new Map<number, number>();
  for (const [index, { socket }] of callers.entries()) {
    if (index < silent) socket.pause(true);
    else {
      socket.listen((text) => {
        const head = Number(/"head":([0-9]+)/.exec(text)?.[1]);
        const received = (heads.get(head) ?? 0) + 1;
        heads.set(head, received);
        if (received === count - silent) send({ kind: 'hint', head, at: machineTime() });
      });
    }
  }
  const over = new Promise((resolve) => process.once('disconnect', resolve));
  send({ kind: 'ready' });
  await over;
}

function send(message: FollowersReport): void {
  process.send?.(message);
}

if (process.send !== undefined) {
  yieldCores();
  const order = await new Promise<FollowersOrder>((resolve) => {
    process.once('message', (message) => resolve(message as FollowersOrder));
  });
  await follow(order);
}
