/** The invocations that operators sign elsewhere, executed by the contract. */
import { beforeEach, describe, expect, test } from 'vitest';
import { Network, type RegistryChange, registryInvocation } from '../../src/index.ts';
import { nodePrimitives } from '../../src/node/primitives.ts';
import { type Argument, Fault, gas, RegistryContract, type Signer } from './contract.ts';

const context = `neo:860833102:0x${'5a'.repeat(20)}`;
const network = new Network({ context, primitives: nodePrimitives });
const relayId = `0x${'12'.repeat(20)}`;
const endpoint = 'https://relay.example.com/svc/v1';

let contract: RegistryContract;
beforeEach(() => {
  contract = new RegistryContract(network.registry);
  contract.balances.set(relayId, 2 * contract.fee);
});

const paramsOf = (change: RegistryChange) =>
  registryInvocation(network, relayId, change).params as unknown as [
    string,
    string,
    { value: Argument }[],
    Signer[],
  ];

/** Executes an invocation, with other signers if they are given. */
function execute(change: RegistryChange, signers?: readonly Signer[]): unknown {
  const [hash, method, args, own] = paramsOf(change);
  expect(hash).toBe(network.registry);
  return contract.execute({
    method,
    args: args.map(({ value }) => value),
    signers: signers ?? own,
  });
}

test('07 §A7: the invocation of a registration is the one of the chapter', () => {
  expect(registryInvocation(network, relayId, { task: 'register', endpoint })).toEqual({
    jsonrpc: '2.0',
    id: 1,
    method: 'invokefunction',
    params: [
      network.registry,
      'registerRelay',
      [
        { type: 'Hash160', value: relayId },
        { type: 'String', value: endpoint },
      ],
      [
        {
          account: relayId,
          scopes: 'CustomContracts',
          allowedcontracts: [network.registry, '0xd2a4cff31913016155e38e474a2c06d08be276cf'],
        },
      ],
    ],
  });
});

describe('07 §A7: the contract accepts', () => {
  test('a paid registration, and pulls the fee', () => {
    expect(execute({ task: 'register', endpoint })).toBe(true);
    expect(contract.records.get(relayId)?.status).toBe('active');
    expect(contract.balances.get(relayId)).toBe(contract.fee);
  });

  test('a free registration', () => {
    contract.fee = 0;
    contract.balances.clear();
    expect(execute({ task: 'register', endpoint })).toBe(true);
  });

  test('no paid registration whose signer has the scope of other calls', () => {
    const signers = [{ account: relayId, scopes: 'CalledByEntry' }];
    expect(() => execute({ task: 'register', endpoint }, signers)).toThrow(Fault);
    const only = [
      { account: relayId, scopes: 'CustomContracts', allowedcontracts: [network.registry] },
    ];
    expect(() => execute({ task: 'register', endpoint }, only)).toThrow(Fault);
    const without = [{ account: relayId, scopes: 'CustomContracts', allowedcontracts: [gas] }];
    expect(execute({ task: 'register', endpoint }, without)).toBe(false);
    expect(contract.records.size).toBe(0);
  });

  test('each later change', () => {
    execute({ task: 'register', endpoint });
    expect(execute({ task: 'disable' })).toBe(true);
    expect(contract.records.get(relayId)?.status).toBe('disabled');
    expect(execute({ task: 'enable' })).toBe(true);
    expect(contract.records.get(relayId)?.status).toBe('active');
    const moved = 'https://moved.example.com/svc/v1';
    expect(execute({ task: 'update-endpoint', endpoint: moved })).toBe(true);
    expect(contract.records.get(relayId)?.endpoint).toEqual(new TextEncoder().encode(moved));
  });
});

test('07 §A3: no invocation is made for an endpoint that no reader would use', () => {
  for (const text of [
    'http://relay.example',
    'https://relay.example/?',
    'https://a b',
    'https://',
  ]) {
    for (const task of ['register', 'update-endpoint'] as const) {
      expect(() => paramsOf({ task, endpoint: text })).toThrow(
        expect.objectContaining({ code: 'bad_request' }),
      );
    }
  }
  expect(() => registryInvocation(network, 'relay', { task: 'enable' })).toThrow(
    expect.objectContaining({ code: 'bad_request' }),
  );
});
