/** What `browsers.ts` measures: the same in a page, in its worker's page and on Node. */
import { type Account, Client, type ClientOptions } from '@posthouse/client';
import { addMessage } from '../packages/client/src/messages/message-rows.ts';

type Options = Pick<ClientOptions, 'network' | 'registry' | 'transport' | 'store'>;

/** Milliseconds that work took. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

/** Longest time without a turn of the event loop while work ran, in milliseconds. */
export async function longestGap(work: () => Promise<unknown>): Promise<number> {
  let isOver = false;
  let worst = 0;
  let last = performance.now();
  const tick = () => {
    const now = performance.now();
    worst = Math.max(worst, now - last);
    last = now;
    if (!isOver) setTimeout(tick, 1);
  };
  setTimeout(tick, 1);
  await work();
  isOver = true;
  return Math.max(worst, performance.now() - last);
}

export const idle = (milliseconds: number) =>
  new Promise<void>((resolve) => {
    setTimeout(resolve, milliseconds);
  });

export async function setUp(options: Options): Promise<Account> {
  return await (await Client.open(options)).setUp();
}

/** Sends messages one after another. @returns milliseconds for each */
export async function sendTime(account: Account, to: string, count: number): Promise<number> {
  const all = await timed(async () => {
    for (let index = 0; index < count; index += 1)
      await account.messages.send(to, { text: 'text' });
  });
  return all / count;
}

/** Opens the stored account again and lists its last messages. */
export async function reloadTime(options: Options): Promise<number> {
  return await timed(async () => {
    const account = await (await Client.open(options)).account();
    await account.messages.list({ limit: 50, newestFirst: true });
  });
}

/** Milliseconds of each verification: on the calling thread, and as pages of a timeline are verified. */
export async function verificationTimes({ network }: Pick<Options, 'network'>, count: number) {
  const { ed25519 } = network.primitives;
  const seed = new Uint8Array(32).fill(7);
  const message = new Uint8Array(500);
  const input = [ed25519.publicKey(seed), message, ed25519.sign(seed, message)] as const;
  const here = await timed(async () => {
    for (let index = 0; index < count; index += 1) ed25519.verify(...input);
  });
  const turns = await timed(async () => {
    for (let index = 0; index < count; index += 8) {
      await network.computeAsync(({ primitives }) =>
        Array.from({ length: 8 }, () => primitives.ed25519.verify(...input)),
      );
    }
  });
  return { here: here / count, turns: turns / count };
}

/** Stores messages as if they had been received. */
export async function fill(
  { store }: Pick<Options, 'store'>,
  { account, peer, count }: { account: string; peer: string; count: number },
): Promise<void> {
  const clock = { milliseconds: () => Date.now(), sleep: idle };
  for (let start = 1; start <= count; start += 1_000) {
    await store.write(async (tx) => {
      for (let index = start; index < Math.min(start + 1_000, count + 1); index += 1) {
        await addMessage({ account, clock }, tx, {
          ...{ message_id: `msg_${index}`, from: peer, from_device_id: 'dev', to: account },
          ...{ created_at: index, digest: '', outcome: 'applied' },
          content: { $type: 'svc.message.direct', body: { format: 'text/plain', text: 'text' } },
        });
      }
    });
  }
}

/** Milliseconds to list the last 50 of all and of one conversation: median of some, and the most. */
export async function listTimes(account: Account, peer: string) {
  const times: number[] = [];
  for (let round = 0; round < 20; round += 1) {
    const range = { limit: 50, newestFirst: true } as const;
    const filter = round % 2 === 0 ? {} : { with: peer };
    times.push(await timed(() => account.messages.list({ ...range, ...filter })));
  }
  times.sort((a, b) => a - b);
  return { median: times[10] ?? 0, most: times.at(-1) ?? 0 };
}
