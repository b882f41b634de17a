import {
  type AccountSigner,
  accountSigner,
  cosignRoute,
  deriveRelayId,
  type FinalRoute,
  routeContent,
  signRouteDraft,
} from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import fc from 'fast-check';
import { beforeAll, expect, test } from 'vitest';
import { locate, observeRoute, readUsableRoute } from '../../src/accounts/index.ts';
import { Person } from '../fixtures/person.ts';
import { seed } from '../support/chance.ts';
import { InProcessRelay, network } from '../support/in-process-relay.ts';

/** Routes of one account that differ in revision, content, relay and life. */
interface RouteFacts {
  readonly revision: number;
  readonly relay: 0 | 1;
  /** Seconds after the start. */
  readonly expires: number;
}

type Step =
  | { readonly kind: 'observe'; readonly route: RouteFacts }
  | { readonly kind: 'lookUp'; readonly routes: readonly RouteFacts[] }
  | { readonly kind: 'publish'; readonly revision: number }
  | { readonly kind: 'clock'; readonly seconds: number }
  | { readonly kind: 'restart' };

const start = 1_750_000_000;
const facts: fc.Arbitrary<RouteFacts> = fc.record({
  revision: fc.integer({ min: 1, max: 6 }),
  relay: fc.constantFrom(0 as const, 1 as const),
  expires: fc.constantFrom(500, 2_000, 100_000),
});
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: facts.map((route) => ({ kind: 'observe', route }) as const) },
    {
      weight: 2,
      arbitrary: fc
        .array(facts, { maxLength: 3 })
        .map((routes) => ({ kind: 'lookUp', routes }) as const),
    },
    {
      weight: 2,
      arbitrary: fc
        .integer({ min: 1, max: 8 })
        .map((revision) => ({ kind: 'publish', revision }) as const),
    },
    {
      weight: 2,
      arbitrary: fc
        .constantFrom(-600, 30, 400, 1_500)
        .map((seconds) => ({ kind: 'clock', seconds }) as const),
    },
    { weight: 1, arbitrary: fc.constant({ kind: 'restart' } as const) },
  ),
  { maxLength: 25 },
);

const others = [0x55, 0x56].map((byte) => accountSigner(network, new Uint8Array(32).fill(byte)));

/** What 07 §B11 says of the memory. */
class Memory {
  highest = -1;
  content: string | undefined;
  route: FinalRoute | undefined;
  conflict = false;

  accept(route: FinalRoute): void {
    const content = contentOf(route);
    if (route.revision < this.highest) return;
    if (route.revision > this.highest) {
      Object.assign(this, { highest: route.revision, content, route, conflict: false });
    } else if (content !== this.content) this.conflict = true;
  }

  usable(now: number): FinalRoute | undefined {
    return this.route !== undefined && !this.conflict && now < this.route.expires_at
      ? this.route
      : undefined;
  }
}

const contentOf = (route: FinalRoute) => Buffer.from(routeContent(network, route)).toString('hex');

let finals: Map<string, Promise<FinalRoute>>;
beforeAll(() => {
  finals = new Map();
});

async function finalRoute(person: Person, { revision, relay, expires }: RouteFacts) {
  const key = canonicalJson({ revision, relay, expires });
  const signer = others[relay] as AccountSigner;
  const made =
    finals.get(key) ??
    signRouteDraft(network, person.signer, {
      ...{ revision, relay_id: deriveRelayId(network, signer.publicKey) },
      ...{ updated_at: start - 1_000, expires_at: start + expires },
    }).then((draft) => cosignRoute(network, signer, draft));
  finals.set(key, made);
  return await made;
}

test('07 §B11: the memory of routes follows the rules in any order of events', async () => {
  const property = fc.asyncProperty(steps, async (sequence) => {
    await using relay = await InProcessRelay.start({ futureTolerance: 10_000 });
    const ann = new Person(relay, 'ann');
    await ann.addDevice('phone');
    const memory = new Memory();
    for (const step of sequence) {
      await take(relay, ann, memory, step);
      await compare(relay, ann, memory);
    }
  });
  await fc.assert(property, { seed, numRuns: Number(process.env.TEST_RUNS ?? 100) });
});

async function take(relay: InProcessRelay, ann: Person, memory: Memory, step: Step): Promise<void> {
  const now = relay.clock.now();
  switch (step.kind) {
    case 'observe': {
      const route = await finalRoute(ann, step.route);
      // The caller verified it before, and that it has not expired (07 §B10).
      if (now >= route.expires_at) return;
      await observeRoute(relay.context, route);
      memory.accept(route);
      return;
    }
    case 'lookUp': {
      const routes = await Promise.all(step.routes.map((route) => finalRoute(ann, route)));
      relay.routes = () => routes;
      await locate(relay.context, ann.account, { now, refresh: true });
      for (const route of routes) if (now < route.expires_at) memory.accept(route);
      relay.routes = () => [];
      return;
    }
    case 'publish':
      return await publish(relay, ann, memory, step.revision);
    case 'clock':
      relay.clock.advance(step.seconds);
      return;
    case 'restart':
      await relay.restart();
  }
}

/** Publishes a route that names the relay under test; it is refused unless it may come into force. */
async function publish(relay: InProcessRelay, ann: Person, memory: Memory, revision: number) {
  const session = { session: ann.accountSession() };
  await relay.codeOf('device.state.publish', await ann.state(), session);
  const draft = await ann.route({ revision });
  const code = await relay.codeOf('account.route.publish', draft, session);
  const isAbove = revision > memory.highest;
  if (code !== 'ok') {
    expect(isAbove).toBe(false);
    return;
  }
  const [row] = await relay.rows('account_routes');
  const route = JSON.parse(row?.route as string) as FinalRoute;
  if (!isAbove) expect(contentOf(route)).toBe(memory.content);
  memory.accept(route);
}

async function compare(relay: InProcessRelay, ann: Person, memory: Memory): Promise<void> {
  const { clock, storage } = relay.context;
  const now = clock.now();
  const text = await storage.read((tx) => readUsableRoute(tx, ann.account, now));
  const expected = memory.usable(now);
  expect(text).toBe(expected === undefined ? undefined : canonicalJson(expected));
  const [row] = await relay.rows('account_routes');
  expect([row?.revision ?? -1, row?.conflict ?? 0]).toEqual([
    memory.highest,
    memory.conflict ? 1 : 0,
  ]);
  // Only an account whose highest route names this relay has devices here.
  if (row?.relay_id !== relay.relayId) expect(await relay.rows('devices')).toEqual([]);
  else expect(await relay.rows('remote_devices')).toEqual([]);
}
