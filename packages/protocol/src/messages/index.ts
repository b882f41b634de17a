export { bodyFormat, checkMessageBody, MessageBody } from './body.ts';
export {
  type Admission,
  type AdmissionCondition,
  admitContent,
  type ContentName,
  type Contents,
  type MessageDirection,
  messageDirection,
  type ParsedContent,
  parseContent,
} from './content.ts';
export {
  ContentEncryption,
  ContentReference,
  checkContentReference,
  openContent,
  sealContent,
} from './content-reference.ts';
export {
  checkDeliveryStatus,
  type DeliveryErrorAction,
  DeliveryStatus,
  DeliveryStatusQuery,
  deliveryDeadline,
  deliveryEndCode,
  deliveryErrorAction,
  RelayError,
} from './delivery.ts';
export { checkDeviceStateChanged, DeviceStateChanged } from './device-state-changed.ts';
export {
  checkDirectMessage,
  DirectMessage,
  DirectMessageReference,
  isReplyWithin,
} from './direct.ts';
export {
  checkEnvelope,
  checkEnvelopeCertificate,
  type EnvelopeTexts,
  envelopeSignatures,
  envelopeSigningInput,
  MessageEnvelope,
  messageAad,
  newMessageId,
  verifyEnvelope,
} from './envelope.ts';
export {
  type HashResolution,
  hashReferenceResolver,
  hashReferenceUri,
  isHashReference,
  mayReferToAttachments,
  resolveHashReference,
} from './hash-reference.ts';
export { checkKeyBoxes, MessageKeyBox, openKeyBox, sealKeyBox } from './key-box.ts';
export { type MediaType, parseMediaType } from './media-type.ts';
export { EncryptedPayload, openPayload, sealPayload } from './payload.ts';
export { openMessage, type SealedMessage, type SealMessageInput, sealMessage } from './seal.ts';
export {
  checkDeliverRequest,
  checkDeliveryAuthorization,
  checkSendRequest,
  DeliverRequest,
  type DeliveryKind,
  deliveryKind,
  readDeliverRequest,
  readSendRequest,
  SendRequest,
} from './send.ts';
export { targetKind } from './target-kind.ts';
export {
  checkTimelinePage,
  MessageTimelineEntry,
  TimelineChanged,
  TimelinePage,
  type TimelinePageRequest,
  TimelineSyncRequest,
  verifyTimelinePage,
} from './timeline.ts';
