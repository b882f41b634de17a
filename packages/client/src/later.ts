/** What an app needs seldom, loaded when it is called: a page starts without it. */

export { discardSetUp } from './accounts/begin-setup.ts';
export { beginMove, cancelMove, runMove } from './accounts/move-home.ts';
export { previewMove } from './accounts/preview-move.ts';
export { setUp } from './accounts/setup.ts';
export { relayUploader } from './attachments/relay-uploader.ts';
export {
  closeChannel,
  createChannel,
  updateChannel,
} from './channels/descriptors/change-channel.ts';
export { findPost } from './channels/posts/find-post.ts';
export { noticeRestoredHost, withoutLostRights } from './channels/timeline/restored-host.ts';
export { rotateSecret } from './groups/keys/rotate-secret.ts';
export { createGroup } from './groups/membership/create-group.ts';
export { hasChange, lostChange } from './groups/timeline/restored-group.ts';
export { acceptedBefore } from './messages/accepted-before.ts';
export { knownStatus } from './messages/known-status.ts';
export { adoptFromOwnDevices } from './own-devices/adopt-channels.ts';
export { applyOwnDeviceObject, applyWaitingObjects } from './own-devices/apply-object.ts';
export { continueHandOvers, handOver } from './own-devices/hand-over.ts';
export { noteNewDevices, sendAccountState, sendChanges } from './own-devices/share-state.ts';
