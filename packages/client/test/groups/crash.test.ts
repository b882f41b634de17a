/** A program that crashes at any store write reaches the same state after a restart. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  type Account,
  MemoryStore,
  type Store,
  type StoreReader,
  type StoreWriter,
} from '../../src/index.ts';
import { LyingRelay } from '../support/lying-relay.ts';
import { impatient, RestartableClient } from '../support/restartable-client.ts';
import { admit, club, groupTexts } from './support.ts';

let relay: LyingRelay;
beforeAll(async () => {
  relay = await LyingRelay.start({ host: { groups: true } });
});
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
});

class Crash extends Error {}

/** A store that crashes at one write: before it is durable, or right after. */
class MortalStore implements Store {
  readonly #store: Store;
  /** Writes until the end. */
  left = Number.POSITIVE_INFINITY;
  isDurable = false;

  constructor(store: Store) {
    this.#store = store;
  }

  read<T>(work: (tx: StoreReader) => Promise<T>): Promise<T> {
    if (this.left < 0) throw new Crash();
    return this.#store.read(work);
  }

  async write<T>(work: (tx: StoreWriter) => Promise<T>): Promise<T> {
    this.left -= 1;
    if (this.left < 0 && !this.isDurable) throw new Crash();
    const result = await this.#store.write(work);
    if (this.left < 0) throw new Crash();
    return result;
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

interface Scene {
  readonly id: string;
  readonly ann: Account;
  readonly carl: Account;
  readonly text: string;
}

interface Step {
  /** Whose program ends. */
  readonly who: 'ann' | 'bob';
  readonly before?: (scene: Scene, bob: Account) => Promise<unknown>;
  readonly act: (account: Account, scene: Scene) => Promise<unknown>;
  /** What its person does after the crash: by default the same again. */
  readonly again?: (account: Account, scene: Scene) => Promise<unknown>;
  /** What everybody reads if so much as the first write was durable. */
  readonly arrives?: string;
}

const ignore = () => undefined;

const steps: Record<string, Step> = {
  'a rotation with a new owner key': {
    who: 'ann',
    act: (ann, { id }) => ann.groups.rotate(id, { newOwnerKey: true }),
  },
  'a rotation that is given up for another one': {
    who: 'ann',
    act: (ann, { id }) => ann.groups.rotate(id, { newOwnerKey: true }),
    again: (ann, { id }) => ann.groups.rotate(id, { newOwnerKey: true, fresh: true }),
  },
  'a recovery of the owner’s own key': {
    who: 'ann',
    act: async (ann, { id }) => {
      await ann.groups.requestRecovery(id);
      await ann.groups.approveRecovery(id, [ann.id]);
    },
    again: async (ann, { id }) => {
      const approving = ann.groups.approveRecovery(id, [ann.id]);
      // Approved already, or not requested yet: both are fine.
      await approving.catch(ignore);
    },
  },
  'an admission': {
    who: 'ann',
    before: async ({ carl, text }) => carl.groups.join(text),
    act: (ann, { id, carl }) => ann.groups.approve(id, [carl.id]),
    again: (ann, { id, carl }) => ann.groups.approve(id, [carl.id]).catch(ignore),
  },
  'a message': {
    who: 'bob',
    before: ({ ann, id }) => ann.groups.rotate(id),
    act: (bob, { id }) => bob.groups.send(id, { text: 'once' }),
    again: async () => undefined,
    arrives: 'once',
  },
  'reading a page': {
    who: 'bob',
    before: async ({ ann, id }) => {
      await ann.groups.send(id, { text: 'one' });
      await ann.groups.rotate(id);
      await ann.groups.send(id, { text: 'two' });
    },
    act: (bob) => bob.sync(),
  },
};

async function setScene(mortal: MortalStore, who: Step['who']) {
  const [ann, bob] = [
    await RestartableClient.begin(relay, who === 'ann' ? mortal : undefined),
    await RestartableClient.begin(relay, who === 'bob' ? mortal : undefined),
  ];
  const carl = await relay.world.person(impatient);
  const id = await club(ann.account, [bob.account]);
  const { text } = await ann.account.groups.invite(id);
  return { ann, bob, scene: { id, ann: ann.account, carl, text } };
}

test.each(Object.entries(steps))('%s', async (_, step) => {
  for (const isDurable of [false, true]) {
    for (let crashAt = 0; ; crashAt += 1) {
      const kept = new MemoryStore();
      const mortal = new MortalStore(kept);
      const { ann, bob, scene } = await setScene(mortal, step.who);
      await step.before?.(scene, bob.account);
      mortal.isDurable = isDurable;
      mortal.left = crashAt;
      const actor = step.who === 'ann' ? ann : bob;
      const ended = await step.act(actor.account, scene).then(
        () => 'done',
        (error: unknown) => error,
      );
      const again = await (await relay.world.client({ store: kept, ...impatient })).account();
      await again.sync();
      if (ended !== 'done') await (step.again ?? step.act)(again, scene);
      await again.sync();

      // All accounts have the same state, and read each message once.
      const { id } = scene;
      const [owner, member] = step.who === 'ann' ? [again, bob.account] : [ann.account, again];
      await owner.groups.send(id, { text: 'of the owner' });
      await member.sync();
      await member.groups.send(id, { text: 'of the member' });
      await Promise.all([owner.sync(), member.sync()]);
      const at = `write ${crashAt}, ${isDurable ? 'durable' : 'lost'}`;
      expect((await owner.groups.get(id)).state, at).toEqual((await member.groups.get(id)).state);
      const texts = await groupTexts(member, id);
      expect(await groupTexts(owner, id), at).toEqual(texts);
      expect(texts.slice(-2), at).toEqual(['of the owner', 'of the member']);
      if (step.arrives !== undefined && (isDurable || crashAt > 0)) {
        expect(texts, at).toContain(step.arrives);
      }
      expect(new Set(texts).size, at).toBe(texts.length);
      expect((await owner.status()).outbox + (await member.status()).outbox, at).toBe(0);
      expect(await kept.read((tx) => tx.list('group-rotations')), at).toEqual([]);
      if (mortal.left >= 0) break;
      expect(ended, at).toBeInstanceOf(Crash);
    }
  }
});

test('a creation and an application', async () => {
  for (const isDurable of [false, true]) {
    for (let crashAt = 0; ; crashAt += 1) {
      const [keptByAnn, keptByBob] = [new MemoryStore(), new MemoryStore()];
      const [annStore, bobStore] = [new MortalStore(keptByAnn), new MortalStore(keptByBob)];
      const ann = await RestartableClient.begin(relay, annStore);
      const bob = await RestartableClient.begin(relay, bobStore);
      Object.assign(annStore, { isDurable, left: crashAt });
      await ann.account.groups.create({ name: 'Club' }).catch(ignore);
      const founder = await (
        await relay.world.client({ store: keptByAnn, ...impatient })
      ).account();
      await founder.sync();
      if ((await founder.groups.list()).length === 0) await founder.groups.create({ name: 'Club' });
      const [group] = await founder.groups.list();
      const id = group?.id ?? '';
      const { text } = await founder.groups.invite(id);
      Object.assign(bobStore, { isDurable, left: crashAt });
      await bob.account.groups.join(text).catch(ignore);
      const reader = await (await relay.world.client({ store: keptByBob, ...impatient })).account();
      await reader.sync();
      const known = await reader.groups.list();
      if (known.length === 0) await admit(founder, id, [reader]);
      else {
        await founder.groups.approve(id, [reader.id]);
        await reader.sync();
      }
      await reader.groups.send(id, { text: 'here' });
      await founder.sync();
      expect(await groupTexts(founder, id)).toEqual(['here']);
      if (annStore.left >= 0 && bobStore.left >= 0) break;
    }
  }
});
