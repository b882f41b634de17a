/**
 * Random changes of the registry, by operators and governance, each compared with a plain model of
 * 07 §A3 and §A4, and read back through a node.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ChainRegistry, Network, registryInvocation } from '../../src/index.ts';
import { nodePrimitives } from '../../src/node/primitives.ts';
import { type Argument, Fault, type Signer } from './contract.ts';
import { FakeNode, type Iterators } from './fake-node.ts';
import { nodePost } from './node-post.ts';

const context = `neo:860833102:0x${'5a'.repeat(20)}`;
const network = new Network({ context, primitives: nodePrimitives });
const relays = ['1', '2', '3'].map((digit) => `0x${digit.repeat(40)}`);

/** What a relay's record must be: the table of 07 §A3 and nothing else. */
interface ModelRecord {
  endpoint: string;
  status: 'active' | 'disabled' | 'suspended';
  changedAt: number;
}

const relay = fc.constantFrom(...relays);
const endpoint = fc.constantFrom('https://a.example', 'https://b.example/svc/v1');
const step = fc.oneof(
  fc.record({ do: fc.constant('register' as const), relay, endpoint }),
  fc.record({ do: fc.constant('update-endpoint' as const), relay, endpoint }),
  fc.record({ do: fc.constantFrom('enable', 'disable', 'suspend', 'restore'), relay }),
  fc.record({ do: fc.constant('fee' as const), fee: fc.constantFrom(0, 5, 1_000) }),
  fc.record({ do: fc.constant('pay' as const), relay, amount: fc.constantFrom(5, 2_000) }),
);
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

/** What the step must return or be, and the model after it. */
function expected(
  model: Map<string, ModelRecord>,
  money: { fee: number; balances: Map<string, number> },
  one: Step,
  now: number,
): boolean | 'FAULT' {
  if (one.do === 'fee' || one.do === 'pay') return true;
  const { relay: id } = one;
  const record = model.get(id);
  if (one.do === 'register') {
    if (record !== undefined) return false;
    const balance = money.balances.get(id) ?? 0;
    if (balance < money.fee) return 'FAULT';
    money.balances.set(id, balance - money.fee);
    model.set(id, {
      endpoint: (one as { endpoint: string }).endpoint,
      status: 'active',
      changedAt: now,
    });
    return true;
  }
  if (record === undefined) return false;
  const put = (change: Partial<ModelRecord>) =>
    void model.set(id, { ...record, ...change, changedAt: now });
  switch (one.do) {
    case 'update-endpoint': {
      const { endpoint: next } = one as { endpoint: string };
      if (record.endpoint !== next) put({ endpoint: next });
      return true;
    }
    case 'enable':
    case 'disable': {
      if (record.status === 'suspended') return false;
      const status = one.do === 'enable' ? 'active' : 'disabled';
      if (record.status !== status) put({ status });
      return true;
    }
    case 'suspend':
      if (record.status !== 'suspended') put({ status: 'suspended' });
      return true;
    default:
      if (record.status !== 'suspended') return false;
      put({ status: 'disabled' });
      return true;
  }
}

/** Executes the step on the contract: operators by the printed invocations. */
function execute({ contract }: FakeNode, one: Step): boolean | 'FAULT' {
  const owner = [{ account: contract.owner, scopes: 'CalledByEntry' }];
  const run = (method: string, args: readonly Argument[], signers: readonly Signer[]) => {
    try {
      return contract.execute({ method, args, signers }) as boolean;
    } catch (error) {
      if (error instanceof Fault) return 'FAULT';
      throw error;
    }
  };
  switch (one.do) {
    case 'fee':
      return run('setRelayRegistrationFee', [(one as { fee: number }).fee], owner);
    case 'pay': {
      const { relay: id, amount } = one as { relay: string; amount: number };
      contract.balances.set(id, (contract.balances.get(id) ?? 0) + amount);
      return true;
    }
    case 'suspend':
    case 'restore':
      return run(`${one.do}Relay`, [(one as { relay: string }).relay], owner);
    default: {
      const { do: task, ...rest } = one as { do: 'enable'; relay: string };
      const { params } = registryInvocation(network, rest.relay, { task, ...rest });
      const [, method, args, signers] = params as never as [
        string,
        string,
        { value: Argument }[],
        Signer[],
      ];
      return run(
        method,
        args.map(({ value }) => value),
        signers,
      );
    }
  }
}

test('07 §A3, §A4, §A6: readers see what any sequence of changes has led to', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { maxLength: 20 }),
      fc.constantFrom<Iterators>('sessions', 'inline'),
      fc.integer({ min: 1, max: 3 }),
      async (steps, iterators, returns) => {
        await using node = await FakeNode.start(context);
        using sender = nodePost();
        Object.assign(node, { iterators, returns });
        node.contract.fee = 0;
        const registry = new ChainRegistry({ network, nodes: [node.url], post: sender.post });
        const model = new Map<string, ModelRecord>();
        const money = { fee: 0, balances: new Map<string, number>() };
        for (const one of steps) {
          const must = expected(model, money, one, node.contract.now);
          if (one.do === 'fee') money.fee = (one as { fee: number }).fee;
          if (one.do === 'pay') {
            const { relay: id, amount } = one as { relay: string; amount: number };
            money.balances.set(id, (money.balances.get(id) ?? 0) + amount);
          }
          expect(execute(node, one)).toBe(must);
        }
        const entryOf = (id: string) => {
          const record = model.get(id);
          if (record === undefined) return undefined;
          const { endpoint, status, changedAt } = record;
          return { relay_id: id, endpoint, status, updated_at: changedAt };
        };
        for (const id of relays) expect(await registry.getRelay(id)).toEqual(entryOf(id));
        const listed: unknown[] = [];
        for await (const entry of registry.listRelays()) listed.push(entry);
        expect(listed).toEqual([...model.keys()].map(entryOf));
        expect(await registry.registrationFee()).toBe(money.fee);
        for (const [id, balance] of money.balances) {
          expect(node.contract.balances.get(id) ?? 0).toBe(balance);
        }
      },
    ),
    { numRuns: 60, seed: 7 },
  );
});
