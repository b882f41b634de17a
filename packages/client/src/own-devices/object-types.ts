/**
 * Types of the objects that this client sends to the account's other devices in addition to those of
 * the protocol (decision 0039). No service word belongs to them: for every other client they are of
 * an unknown type, which changes no protocol state (04 §7.2).
 */
const prefix = 'posthouse.own-device.';

/** Followed channels and read marks. */
export const accountStateType = `${prefix}state.v1`;

/** Stored messages, handed over by an older device. */
export const historyType = `${prefix}history.v1`;

/** Whether an object is one of these, of any version: it is never shown as a message. */
export function isOwnDeviceType(type: unknown): boolean {
  return typeof type === 'string' && type.startsWith(prefix);
}
