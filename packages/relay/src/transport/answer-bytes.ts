import {
  isMethodName,
  type MethodDefinition,
  type MethodName,
  methods,
  limits as protocolLimits,
} from '@posthouse/protocol';
import type { RelayLimits } from '../limits.ts';

type Methods = typeof methods;

/** Methods that answer an object which is no page. */
type AnsweringName = {
  [N in MethodName]: Methods[N]['result'] extends null
    ? never
    : Methods[N] extends { readonly page: string }
      ? never
      : N;
}[MethodName];

/** Bytes of an answer without texts of clients: numbers, IDs, a token. */
const short = 1_024;
/** Bytes of an ID in the list of a refusal. */
const listedId = 32;
/** Bytes of JSON that one byte of a text becomes at the most. */
const escaped = 6;

/** The most bytes that each method answers, a refusal with a list of IDs included. */
function unpagedBytes(
  limits: RelayLimits,
): Readonly<Record<AnsweringName | 'group.subscribe' | 'channel.subscribe', number>> {
  const { certificateBytes, channelDescriptorBytes, deviceStateBytes, profileBytes, routeBytes } =
    protocolLimits;
  const { groupDescriptionBytes, groupNameBytes, groupWriteBytes } = protocolLimits;
  return {
    'relay.descriptor': limits.federationDescriptorBytes,
    'relay.info': 4 * short,
    'auth.challenge': short,
    'auth.device.verify': short,
    'auth.account.verify': short,
    'device.state.publish': short,
    'device.state.resolve': deviceStateBytes,
    'profile.resolve': profileBytes + certificateBytes,
    'account.route.publish': routeBytes,
    'account.route.resolve': routeBytes,
    'message.send': short,
    'message.delivery.status': short,
    'channel.resolve': channelDescriptorBytes + certificateBytes,
    'channel.post': short,
    'channel.subscribe': listedId * limits.channelSubscriptions,
    'group.resolve': escaped * (groupNameBytes + groupDescriptionBytes) + short,
    'group.invite.resolve': groupWriteBytes + certificateBytes,
    'group.member.recovery.submit': short,
    'group.secret.rotation.prepare': short,
    'group.message.send': short,
    'group.subscribe': listedId * limits.groupSubscriptions,
  };
}

/** The tables of the limits in use. */
const tables = new WeakMap<RelayLimits, Readonly<Record<string, number>>>();

/** Returns the bytes that the answer of a method has at the most, without what it is wrapped in. */
export function answerBytes(limits: RelayLimits, method: string): number {
  if (!isMethodName(method)) return short;
  const definition: MethodDefinition = methods[method];
  if (definition.page !== undefined) return limits.pageBytes;
  const table: Readonly<Record<string, number>> = tables.get(limits) ?? unpagedBytes(limits);
  tables.set(limits, table);
  return table[method] ?? short;
}
