import type { Static, TSchema } from '../schema.ts';
import { baseMethods, baseNotifications } from './base.ts';
import { channelMethods, channelNotifications } from './channels.ts';
import { groupMethods, groupNotifications } from './groups.ts';

export {
  AccountVerification,
  baseMethods,
  DeviceStatePublished,
  DeviceVerification,
  ResolvedProfile,
} from './base.ts';
export { channelMethods } from './channels.ts';
export type {
  Capability,
  HttpVerb,
  MethodDefinition,
  NotificationDefinition,
  SessionRule,
} from './definition.ts';
export { groupMethods } from './groups.ts';
export { decodeQuery, encodeQuery } from './query.ts';

/** The catalogue: every method of the client API by its dotted name. */
export const methods = { ...baseMethods, ...channelMethods, ...groupMethods };

/** Every WebSocket notification by its name. */
export const notifications = {
  ...baseNotifications,
  ...channelNotifications,
  ...groupNotifications,
};

export type MethodName = keyof typeof methods;
export type NotificationName = keyof typeof notifications;

/** Parameters of a method. */
export type ParamsOf<N extends MethodName> = Static<(typeof methods)[N]['params']>;

/** Response object of a method; `null` if it defines none. */
export type ResultOf<N extends MethodName> = (typeof methods)[N]['result'] extends infer R
  ? R extends TSchema
    ? Static<R>
    : null
  : never;

/** Parameters of a notification. */
export type NoticeOf<N extends NotificationName> = Static<(typeof notifications)[N]['params']>;

/**
 * Returns whether a text names a method of the catalogue; the match is complete and case-sensitive.
 *
 * @example
 * isMethodName('relay.info'); // true
 */
export function isMethodName(name: string): name is MethodName {
  return Object.hasOwn(methods, name);
}

/**
 * Returns the path of a method below a base address (chapter 02, section 2.1).
 * @example
 * methodPath('relay.info'); // '/relay/info'
 */
export function methodPath(name: string): string {
  return `/${name.replaceAll('.', '/')}`;
}
