/** Operations on requests of relay RPC (07 §C2, §C3): what a target does before it looks into its state. */
import {
  type RelayMethodName,
  type RelayNotificationName,
  relayMethods,
  relayNotifications,
} from '../../src/federation/index.ts';
import {
  checkAccountId,
  checkDeliverRequest,
  checkDepth,
  checkDeviceStateQuery,
  checkNoNull,
  checkSchema,
  errorCatalogue,
  isSignedQuery,
  type Network,
  ProtocolError,
  rpcErrors,
} from '../../src/index.ts';
import {
  diagnoseEnvelope,
  isJsonObject,
  isRpcId,
  type JsonObject,
  type JsonValue,
  parseJson,
} from '../../src/json/index.ts';
import { type Operation, operation } from './operation.ts';

const refused = (code: number, id: JsonValue): JsonObject => ({ answer: { code, id } });

/** Reads a request or notification; the outcome is what its target does with it. */
function readRequest(network: Network, text: string): JsonObject {
  let value: JsonValue;
  try {
    value = parseJson(text);
  } catch {
    const { rpc, id } = diagnoseEnvelope(text);
    return refused(rpc, id);
  }
  if (!isJsonObject(value)) return refused(rpcErrors.invalid_request, null);
  const { jsonrpc, id, method, params = {} } = value;
  if (id !== undefined && !isRpcId(id)) return refused(rpcErrors.invalid_request, null);
  if (jsonrpc !== '2.0' || typeof method !== 'string') {
    return refused(rpcErrors.invalid_request, id ?? null);
  }
  const catalogue = id === undefined ? relayNotifications : relayMethods;
  try {
    if (!Object.hasOwn(catalogue, method)) throw new ProtocolError('method_not_found', method);
    checkParams(network, method as RelayMethodName | RelayNotificationName, params);
    return id === undefined ? { notification: method } : { request: { id, method } };
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    return id === undefined ? { ignored: true } : refused(errorCatalogue[error.code].rpc, id);
  }
}

function checkParams(
  network: Network,
  name: RelayMethodName | RelayNotificationName,
  params: JsonValue,
): void {
  const definition = { ...relayMethods, ...relayNotifications }[name];
  checkSchema(definition.params, params);
  const members = params as JsonObject;
  checkNoNull(members);
  if (Object.hasOwn(members, '$context')) throw new ProtocolError('bad_request', '$context');
  const { memberDepth = {} } = definition as { memberDepth?: Record<string, number> };
  for (const [member, depth] of Object.entries(memberDepth)) {
    if (members[member] !== undefined) checkDepth(members[member], depth);
  }
  if (name === 'message.deliver') checkDeliverRequest(network, members);
  else if (name === 'device.state.resolve' && isSignedQuery(members)) {
    checkDeviceStateQuery(network, members);
  } else checkAccountId(network, members.account as string, 'account');
}

export const relayRpc: Record<string, Operation> = {
  'relay_rpc.request': operation<{ text: string }>((network, { text }) =>
    readRequest(network, text),
  ),
};
