/** Which codes a method may answer a client with, from the chapters. */
import {
  type ErrorCode,
  type MethodDefinition,
  type MethodName,
  methods,
} from '@posthouse/protocol';

/** Of every method: shape, an unknown method or verb, rate (02 §4, §18; 01 §19). */
const ofAll = ['bad_request', 'method_not_found', 'rate_limited', 'request_too_large'] as const;
/** Of every method with a session (02 §9.5, §10.7). */
const ofSessions = ['unauthorized', 'forbidden'] as const;
/** Of objects that a device signed (01 §19). */
const ofSigned = ['invalid_signature', 'device_unknown', 'forbidden'] as const;
/** Of what is asked of other relays (02 §4.1, 07 §C9). */
const ofOthers = ['bad_gateway', 'temporarily_unavailable', 'invalid_state'] as const;
/** Of what only an account's home answers (03 §4, §5, §7, §8; 04 §13). */
const ofHomes = ['route_not_found', 'route_stale', 'target_not_local', ...ofOthers] as const;
/** Of groups and channels (05 §13, 06 §8). */
const ofHosts = ['not_found', 'state_conflict'] as const;

const own: Partial<Record<MethodName, readonly ErrorCode[]>> = {
  'auth.device.verify': ['unauthorized', 'clock_skew', ...ofSigned, ...ofHomes],
  'auth.account.verify': ['unauthorized', 'invalid_signature', 'forbidden'],
  'device.state.publish': ['invalid_signature', 'stale_state', 'state_conflict', ...ofHomes],
  'device.state.resolve': [...ofSigned, 'clock_skew', 'not_found', ...ofHomes],
  'profile.publish': ['clock_skew', 'stale_state', 'state_conflict', ...ofHomes],
  'profile.resolve': ['not_found', ...ofHomes],
  'account.route.publish': ['invalid_signature', 'stale_state', 'state_conflict', ...ofOthers],
  'account.route.resolve': ['route_not_found', ...ofOthers],
  'message.send': ['clock_skew', 'message_expired', 'not_found', 'state_conflict', ...ofHomes],
  'message.delivery.status': ['not_found', 'message_expired'],
  'channel.create': ['clock_skew'],
  'channel.update': ['clock_skew'],
  'channel.close': ['clock_skew'],
  'group.invite.create': ['clock_skew'],
  'group.message.send': ['clock_skew'],
};

/** Returns the codes that a method may answer with. */
export function allowedCodes(name: MethodName): ReadonlySet<string> {
  const { session, capability, params }: MethodDefinition = methods[name];
  const codes: ErrorCode[] = [...ofAll, ...(own[name] ?? [])];
  if (session !== 'none') codes.push(...ofSessions);
  if (capability !== undefined) codes.push(...ofHosts);
  const { properties = {} } = params as { readonly properties?: object };
  const isSigned = ['device_signature', 'approval', 'create', 'envelope'].some((member) =>
    Object.hasOwn(properties, member),
  );
  if (isSigned) codes.push(...ofSigned);
  return new Set(codes);
}
