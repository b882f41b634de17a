import { later } from '../parts/later.tsx';
import { nameOf } from '../parts/names.ts';
import type { App } from '../state/app.ts';
import { ending } from '../state/ending.ts';
import type { OpenConversation } from '../state/open-conversation.ts';
import { text } from '../text/index.ts';

const Why = later(async () => (await import('../account/ended.tsx')).Why, true);
const Attach = later(async () => (await import('../attachments/index.ts')).Attach, true);

/** Where a message is written. */
export function Composer({
  app,
  opened,
}: {
  readonly app: App;
  readonly opened: OpenConversation;
}) {
  if (ending.value !== '')
    return (
      <p class="composer">
        <Why />
      </p>
    );
  const contact = app.contacts.value.find(({ account }) => account === opened.id);
  const mayWrite = opened.id === app.account.id || contact?.status === 'active';
  const answered = opened.replyTo.value;
  const refusal = contact?.status === 'waiting' ? text.requestSent : text.notContact;
  const barrier = opened.source.barrier?.value ?? (mayWrite ? '' : refusal);
  if (barrier !== '') return <p class="composer">{barrier}</p>;
  const post = () => app.try(() => opened.post());
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        void post();
      }}
    >
      {answered && (
        <p class="answering">
          {text.replyingTo} {answered.sender ?? nameOf(app, answered.from)}
          <button
            type="button"
            class="plain"
            onClick={() => {
              opened.replyTo.value = undefined;
            }}
          >
            {text.cancel}
          </button>
        </p>
      )}
      <Attach {...{ app, opened }} />
      <textarea
        aria-label={text.write}
        placeholder={text.write}
        dir="auto"
        rows={Math.min(8, opened.draft.value.split('\n').length)}
        value={opened.draft.value}
        onInput={({ currentTarget }) => opened.write(currentTarget.value)}
        onKeyDown={(event) => {
          // Enter sends, as people expect of a messenger; an input method may need it for itself.
          // Some browsers say 229 of the Enter that ends a composition.
          const isComposing = event.isComposing || event.keyCode === 229;
          if (event.key !== 'Enter' || event.shiftKey || isComposing) return;
          event.preventDefault();
          if (event.repeat) return;
          void post();
        }}
      />
      <button
        type="submit"
        disabled={opened.files.value.some(({ reference }) => reference === undefined)}
      >
        {text.send}
      </button>
    </form>
  );
}
