/**
 * Random writes to a channel through several clients, compared with a plain model of a channel, and
 * with what readers get at any time and with any page size.
 */
import type { ChannelPage, ContentReference } from '@posthouse/protocol';
import { canonicalJson, type JsonObject } from '@posthouse/protocol/json';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { seed } from '../../../relay/test/support/chance.ts';
import { type Account, isClientError } from '../../src/index.ts';
import { anotherDevice } from '../groups/support.ts';
import { LyingRelay } from '../support/lying-relay.ts';

const numRuns = Number(process.env.TEST_RUNS ?? 25);

const writers = ['phone', 'laptop', 'ben', 'dora'] as const;
const writer = fc.constantFrom('phone', 'phone', 'laptop', 'laptop', 'ben', 'ben', 'dora');
const words = fc.constantFrom('one', 'two', 'three');
const files = fc.oneof(
  { weight: 5, arbitrary: fc.uniqueArray(fc.nat(2), { maxLength: 2 }) },
  { weight: 1, arbitrary: fc.constant([1, 1]) },
);
const patched = <T>(values: fc.Arbitrary<T>) =>
  fc.oneof(fc.constant(undefined), fc.constant(null), values, values);
const step = <K extends string, T extends object>(
  weight: number,
  kind: K,
  parts: { [P in keyof T]: fc.Arbitrary<T[P]> },
) => ({
  weight,
  arbitrary: fc.record<{ kind: K } & T>({ kind: fc.constant(kind), ...parts } as never),
});
const steps = fc.oneof(
  { withCrossShrink: true },
  step(6, 'look', { by: writer, most: fc.integer({ min: 1, max: 4 }) }),
  step(8, 'post', {
    by: writer,
    text: fc.option(words, { nil: undefined, freq: 4 }),
    files: patched(files),
  }),
  step(10, 'edit', { by: writer, which: fc.nat(3), text: patched(words), files: patched(files) }),
  step(3, 'delete', { by: writer, which: fc.nat(3) }),
  step(4, 'update', { by: writer, moderated: fc.boolean(), name: words }),
  step(1, 'close', { by: writer, isMeant: fc.nat(3).map((chance) => chance === 3) }),
  step(1, 'restart', {}),
);
type Step = typeof steps extends fc.Arbitrary<infer T> ? T : never;

const file = (number: number): ContentReference => ({
  uri: `https://files.example/${number}`,
  hash: `sha256:${'ABC'[number]}${'A'.repeat(42)}`,
  content_type: 'image/png',
  size: number,
});

interface State {
  readonly text?: string;
  readonly files?: readonly number[];
}

/** A model of a channel by chapter 06, without time and retention. */
class Reference {
  head = 0;
  revision = 0;
  name = 'start';
  isModerated = true;
  isClosed = false;
  /** Posts there are; `undefined` once they are deleted. */
  readonly posts = new Map<number, State | undefined>();

  /** Whether it is accepted. */
  take(one: Exclude<Step, { kind: 'look' | 'restart' }>, target: number): boolean {
    const isOwner = one.by === 'phone' || one.by === 'laptop';
    const mayWrite = isOwner || (one.by === 'ben' && this.isModerated);
    if (this.isClosed || !mayWrite) return false;
    if (one.kind === 'update' || one.kind === 'close') {
      if (!isOwner) return false;
      this.head += 1;
      this.revision += 1;
      if (one.kind === 'close') this.isClosed = true;
      else Object.assign(this, { isModerated: one.moderated, name: one.name });
      return true;
    }
    if (one.kind === 'post') return this.#put(this.head + 1, patch({}, one));
    const before = this.posts.get(target);
    if (before === undefined) return false;
    if (one.kind === 'edit') {
      if (one.text === undefined && one.files === undefined) return false;
      const after = patch(before, one);
      return JSON.stringify(after) === JSON.stringify(before) || this.#put(target, after);
    }
    this.head += 1;
    this.posts.set(target, undefined);
    return true;
  }

  #put(sequence: number, state: State): boolean {
    const { text, files: some = [] } = state;
    if (new Set(some).size < some.length) return false;
    if (text === undefined && some.length === 0) return false;
    this.head += 1;
    this.posts.set(sequence, state);
    return true;
  }

  /** Canonical JSON of what readers see, by sequence. */
  get content(): [number, string][] {
    return [...this.posts].flatMap(([sequence, state]) =>
      state === undefined ? [] : [[sequence, canonicalJson(contentOf(state))]],
    );
  }
}

function patch(before: State, { text, files: some }: Patch): State {
  const { text: oldText, files: oldFiles } = before;
  const newText = text === undefined ? oldText : text;
  const newFiles = some === undefined ? oldFiles : some;
  // In a fixed order, so that equal states have equal texts.
  return {
    ...(typeof newText === 'string' && { text: newText }),
    ...(Array.isArray(newFiles) && { files: newFiles as number[] }),
  };
}

interface Patch {
  readonly text: string | null | undefined;
  readonly files: readonly number[] | null | undefined;
}

const contentOf = ({ text, files: some }: State): JsonObject =>
  ({
    ...(text !== undefined && { body: { content_type: 'text/plain', text } }),
    ...(some !== undefined && { attachments: some.map(file) }),
  }) as JsonObject;

let relay: LyingRelay;
let people: Record<(typeof writers)[number] | 'emil' | 'fay', Account>;
beforeAll(async () => {
  relay = await LyingRelay.start({ host: { channels: true } });
  const [phone, ben, dora, emil, fay] = (await Promise.all(
    Array.from({ length: 5 }, () => relay.world.person({ prefer: 'http' })),
  )) as [Account, Account, Account, Account, Account];
  const laptop = await anotherDevice(relay.world, phone, { prefer: 'http' });
  people = { phone, laptop, ben, dora, emil, fay };
});
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
});

/** The host returns fewer events than requested. */
function shorten(most: number, direction: 'newer' | 'older'): void {
  relay.lie('channel.read', ({ events: all, certificates, has_more }: ChannelPage) => {
    const events = direction === 'newer' ? all.slice(0, most) : all.slice(-most);
    // Certificates without a reference are allowed (06 §5.2).
    return { events, certificates, has_more: has_more || events.length < all.length };
  });
}

async function expectSeen(account: Account, id: string, model: Reference): Promise<void> {
  const posts = await account.channels.listPosts(id);
  const seen = posts.map(({ sequence, content }) => [sequence, canonicalJson(content)]);
  expect(seen).toEqual(model.content);
  const { descriptor, span } = await account.channels.get(id);
  expect(span?.position).toBe(model.head);
  expect(descriptor).toMatchObject({
    name: model.name,
    revision: model.revision,
    status: model.isClosed ? 'closed' : 'active',
  });
}

async function act(by: Account, id: string, one: Step, target: number): Promise<unknown> {
  const { channels } = by;
  if (one.kind === 'update') {
    const moderators = one.moderated ? [people.ben.id] : null;
    return await channels.update(id, { name: one.name, moderators });
  }
  if (one.kind === 'close') return await channels.close(id);
  if (one.kind === 'delete') return await channels.delete(id, target);
  if (one.kind !== 'post' && one.kind !== 'edit') return undefined;
  const attachments = one.files?.map(file) ?? (one.files as null | undefined);
  const said = {
    ...(one.text !== undefined && { text: one.text }),
    ...(attachments !== undefined && { attachments }),
  };
  return one.kind === 'edit'
    ? await channels.edit(id, target, said)
    : await channels.send(id, said as { text: string });
}

async function play(sequence: readonly Step[]): Promise<void> {
  relay.behave();
  const { phone, laptop, ben, dora, emil, fay } = people;
  const { id, link } = await phone.channels.create({ name: 'start', moderators: [ben.id] });
  const model = new Reference();
  for (const reader of [laptop, ben, dora]) await reader.channels.follow(link);
  for (const one of sequence) {
    if (one.kind === 'restart') {
      await relay.world.stopRelay();
      await relay.world.startRelay();
      continue;
    }
    const by = people[one.by as keyof typeof people];
    if (one.kind === 'look') {
      shorten(one.most, 'newer');
      await by.channels.sync(id);
      relay.behave();
      await expectSeen(by, id, model);
      continue;
    }
    if (one.kind === 'close' && !one.isMeant) continue;
    if (one.kind === 'post' && one.files === null) continue;
    const which = 'which' in one ? one.which : 0;
    const target = [...model.posts.keys()].at(-1 - (which % Math.max(model.posts.size, 1))) ?? 1;
    await by.channels.sync(id);
    const isAccepted = await act(by, id, one, target).then(
      () => true,
      (error: unknown) => {
        if (!isClientError(error)) throw error;
        return false;
      },
    );
    expect(isAccepted, JSON.stringify(one)).toBe(model.take(one, target));
  }
  shorten(3, 'newer');
  await emil.channels.follow(link, { from: 'creation' });
  shorten(2, 'older');
  await fay.channels.follow(link);
  while (await fay.channels.readOlder(id));
  relay.behave();
  for (const reader of [phone, laptop, ben, dora]) await reader.channels.sync(id);
  for (const reader of Object.values(people)) await expectSeen(reader, id, model);
  const entries = await emil.channels.listEntries(id);
  expect(await fay.channels.listEntries(id)).toEqual(entries);
  for (const reader of [emil, fay]) await reader.channels.unfollow(id);
}

test(`06 §10: clients and the model agree on a channel (seed ${seed})`, {
  timeout: 600_000,
}, async () => {
  const sequences = fc.array(steps, { minLength: 30, maxLength: 60 });
  await fc.assert(fc.asyncProperty(sequences, play), { seed, numRuns });
});
