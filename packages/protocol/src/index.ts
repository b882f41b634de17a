export * from './channels/index.ts';
export * from './contacts/index.ts';
export { decodeBase64url, encodeBase64url } from './encoding/base64url.ts';
export { fromHex, hex, utf8, utf8Length } from './encoding/bytes.ts';
export { decodeVarint, encodeVarint } from './encoding/varint.ts';
export {
  badRequest,
  type ErrorCode,
  errorCatalogue,
  errorCodeOfRpc,
  isErrorCode,
  ProtocolError,
  rpcErrors,
} from './errors.ts';
export { encodeFrame } from './federation/frame.ts';
export { encodeFindNode } from './federation/kad.ts';
export {
  compareDistance,
  deriveRouteKey,
  dhtDistance,
  dhtPosition,
} from './federation/keyspace.ts';
export * from './groups/index.ts';
export * from './identity/index.ts';
export { limits } from './limits.ts';
export * from './messages/index.ts';
export * from './methods/index.ts';
export * from './registry-chain/index.ts';
export {
  AccountId,
  Counter,
  checkDepth,
  checkNoNull,
  checkObject,
  checkSchema,
  checkText,
  DeviceId,
  MessageId,
  RelayId,
  type Static,
  type TSchema,
  Type,
  UnixSeconds,
} from './schema.ts';
