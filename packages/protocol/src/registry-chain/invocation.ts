import { checkHttpsEndpoint } from '../identity/endpoint.ts';
import type { Network } from '../identity/network.ts';
import type { JsonObject } from '../json/types.ts';
import { checkSchema, RelayId } from '../schema.ts';

/** Script hash of the native GAS contract of every Neo N3 network (07 §A7). */
const gasContract = '0xd2a4cff31913016155e38e474a2c06d08be276cf';

/** What an operator changes in the registry. */
export type RegistryChange =
  | { readonly task: 'register' | 'update-endpoint'; readonly endpoint: string }
  | { readonly task: 'enable' | 'disable' };

/**
 * Makes the JSON-RPC request that simulates a change of a relay's record, with the signer and the
 * scope that the transaction needs (07 §A7). Signing and sending it are up to the operator's wallet.
 *
 * A registration pulls the fee from the relay's account in a nested call, which a signer with the
 * scope `CalledByEntry` does not permit.
 *
 * @throws ProtocolError `bad_request` for an endpoint that no reader would use (07 §A3)
 * @example
 * const change = { task: 'register', endpoint: 'https://relay.example.com/svc/v1' } as const;
 * console.log(JSON.stringify(registryInvocation(network, relayId, change)));
 */
export function registryInvocation(
  network: Network,
  relayId: string,
  change: RegistryChange,
): JsonObject {
  checkSchema(RelayId, relayId);
  const account = { type: 'Hash160', value: relayId };
  const { registry } = network;
  const byEntry = { account: relayId, scopes: 'CalledByEntry' };
  switch (change.task) {
    case 'register':
      return request(registry, 'registerRelay', [account, endpointArgument(change.endpoint)], {
        account: relayId,
        scopes: 'CustomContracts',
        allowedcontracts: [registry, gasContract],
      });
    case 'update-endpoint':
      return request(
        registry,
        'updateRelayEndpoint',
        [account, endpointArgument(change.endpoint)],
        byEntry,
      );
    default: {
      const enabled = { type: 'Boolean', value: change.task === 'enable' };
      return request(registry, 'setRelayEnabled', [account, enabled], byEntry);
    }
  }
}

function endpointArgument(endpoint: string): JsonObject {
  checkHttpsEndpoint(endpoint, 'endpoint');
  return { type: 'String', value: endpoint };
}

function request(
  registry: string,
  method: string,
  args: readonly JsonObject[],
  signer: JsonObject,
): JsonObject {
  const params = [registry, method, args, [signer]];
  return { jsonrpc: '2.0', id: 1, method: 'invokefunction', params };
}
