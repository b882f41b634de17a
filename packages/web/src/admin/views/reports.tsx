/** What readers reported, and posts that are withheld. */
import { useState } from 'preact/hooks';
import { Listed, useList } from '../list.tsx';
import { attempt, confirm } from '../notice.ts';
import { Button, count, Facts, Heading, Id, Long, Name, Table, When } from '../parts.tsx';
import { offerBlock } from '../route.ts';
import { call } from '../session.ts';
import { Opened } from './opened.tsx';

interface PostKey {
  readonly channel_id: string;
  readonly sequence: number;
}

interface Report extends PostKey {
  readonly post: keyof typeof postStates;
  readonly account: string;
  readonly device_id: string;
  readonly reported_at: number;
  readonly reason: string;
}

interface Post extends PostKey {
  readonly post: keyof typeof postStates;
  readonly channel_name?: string;
  readonly account?: string;
  readonly accepted_at?: number;
  readonly withheld_at?: number;
  readonly state?: {
    readonly body?: { readonly text: string };
    readonly attachments?: readonly {
      readonly uri: string;
      readonly content_type: string;
      readonly size: number;
    }[];
  };
}

interface Withheld extends PostKey {
  readonly account: string;
  readonly withheld_at: number;
  readonly keep_until: number;
}

const postStates = {
  readable: 'readable',
  withheld: 'withheld from its channel',
  deleted: 'deleted by the owner or a moderator',
  gone: 'gone: its retention is over, or it never existed',
} as const;

const nameOf = ({ channel_id, sequence }: PostKey) => `post ${sequence} of ${channel_id}`;

export function Reports() {
  const [opened, setOpened] = useState<PostKey>();
  if (opened !== undefined) return <OnePost of={opened} close={() => setOpened(undefined)} />;
  return (
    <>
      <Heading>Reports</Heading>
      <p>Every reader of a channel can report a post to you. A report has no effect by itself.</p>
      <ReportList open={setOpened} />
      <WithheldList />
    </>
  );
}

function ReportList({ open }: { readonly open: (post: PostKey) => void }) {
  const list = useList<Report>('report/list');
  return (
    <section>
      <h2>Reported</h2>
      <Listed list={list}>
        <Table
          caption="Reports, the newest first"
          items={list.items}
          keyOf={(one) => `${nameOf(one)} ${one.account}`}
          none="There is no report."
          columns={[
            { title: 'Reported', cell: ({ reported_at }) => <When at={reported_at} /> },
            {
              title: 'Post',
              cell: ({ channel_id, sequence }) => (
                <>
                  {sequence} of <Id text={channel_id} />
                </>
              ),
            },
            { title: 'Is', cell: ({ post }) => postStates[post] ?? post },
            { title: 'Reason', cell: ({ reason }) => <Long text={reason} /> },
            { title: 'By', cell: ({ account }) => <Id text={account} /> },
            {
              title: 'Do',
              cell: ({ channel_id, sequence }) => (
                <Button
                  about={nameOf({ channel_id, sequence })}
                  work={() => open({ channel_id, sequence })}
                >
                  Decide
                </Button>
              ),
            },
          ]}
        />
      </Listed>
    </section>
  );
}

function WithheldList() {
  const list = useList<Withheld>('report/withheld');
  const restore = ({ channel_id, sequence }: PostKey) =>
    attempt(async () => {
      await call('report/restore', { channel_id, sequence });
      await list.reload();
      return `${nameOf({ channel_id, sequence })} is readable again.`;
    });
  return (
    <section>
      <h2>Withheld</h2>
      <Listed list={list}>
        <Table
          caption="Posts that you withhold, the newest first"
          items={list.items}
          keyOf={nameOf}
          none="No post is withheld."
          columns={[
            {
              title: 'Post',
              cell: ({ channel_id, sequence }) => (
                <>
                  {sequence} of <Id text={channel_id} />
                </>
              ),
            },
            { title: 'By', cell: ({ account }) => <Id text={account} /> },
            { title: 'Withheld', cell: ({ withheld_at }) => <When at={withheld_at} /> },
            { title: 'Kept until', cell: ({ keep_until }) => <When at={keep_until} /> },
            {
              title: 'Do',
              cell: (post) => (
                <Button about={nameOf(post)} work={() => restore(post)}>
                  Make readable again
                </Button>
              ),
            },
          ]}
        />
      </Listed>
    </section>
  );
}

function OnePost({ of, close }: { readonly of: PostKey; readonly close: () => void }) {
  return (
    <Opened<Post> title="Reported post" verb="report/show" params={{ ...of }} close={close}>
      {(post, reload) => (
        <>
          <PostFacts post={post} />
          <ReportsOf of={of} />
          <Decisions {...{ of, post, reload, close }} />
        </>
      )}
    </Opened>
  );
}

function PostFacts({ post }: { readonly post: Post }) {
  const { channel_name = '', account, accepted_at, withheld_at, state } = post;
  const { body, attachments = [] } = state ?? {};
  return (
    <>
      <Facts
        of={[
          ['Channel', <Name text={channel_name} />],
          [
            'Post',
            <span>
              {post.sequence} of <Id text={post.channel_id} />
            </span>,
          ],
          ['It is', postStates[post.post] ?? post.post],
          ['By', <Id text={account ?? 'not known'} />],
          ['Posted', <When at={accepted_at} />],
          ...(withheld_at === undefined ? [] : [['Withheld', <When at={withheld_at} />] as const]),
        ]}
      />
      <h2>What it says</h2>
      {body === undefined ? (
        <p class="soft">No text.</p>
      ) : (
        <div class="quote">
          <Long text={body.text} />
        </div>
      )}
      {attachments.map(({ uri, content_type, size }) => (
        <p key={uri}>
          Attachment <Id text={uri} />, <Name text={content_type} />, {count(size)} bytes
        </p>
      ))}
    </>
  );
}

function ReportsOf({ of }: { readonly of: PostKey }) {
  const list = useList<Report>('report/list', { ...of });
  return (
    <section>
      <h2>What readers say</h2>
      <Listed list={list}>
        <Table
          caption="Reports about this post, the newest first"
          items={list.items}
          keyOf={(one) => one.account}
          none="No report is left."
          columns={[
            { title: 'Reported', cell: ({ reported_at }) => <When at={reported_at} /> },
            { title: 'Reason', cell: ({ reason }) => <Long text={reason} /> },
            { title: 'By', cell: ({ account }) => <Id text={account} /> },
          ]}
        />
      </Listed>
    </section>
  );
}

function Decisions({
  of,
  post,
  reload,
  close,
}: {
  readonly of: PostKey;
  readonly post: Post;
  readonly reload: () => Promise<void>;
  readonly close: () => void;
}) {
  const name = nameOf(of);
  const withhold = () =>
    attempt(async () => {
      const lines = [
        name,
        'No client can read it any more. The reports about it are dismissed. You can make it readable again until its retention is over.',
      ];
      if (!(await confirm({ title: 'Withhold this post?', lines, yes: 'Withhold' }))) return;
      await call('report/withhold', { ...of });
      close();
      return `${name} is withheld.`;
    });
  const restore = () =>
    attempt(async () => {
      await call('report/restore', { ...of });
      await reload();
      return `${name} is readable again.`;
    });
  const dismiss = () =>
    attempt(async () => {
      const lines = [name, 'The post stays as it is.'];
      if (!(await confirm({ title: 'Dismiss all reports about it?', lines, yes: 'Dismiss' })))
        return;
      const { dismissed } = await call<{ readonly dismissed: number }>('report/dismiss', { ...of });
      close();
      return `${dismissed === 1 ? '1 report' : `${count(dismissed)} reports`} dismissed.`;
    });
  return (
    <section>
      <h2>Decide</h2>
      <div class="row">
        {post.post === 'readable' && (
          <Button kind="danger" work={withhold}>
            Withhold the post …
          </Button>
        )}
        {post.post === 'withheld' && <Button work={restore}>Make readable again</Button>}
        <Button work={dismiss}>Dismiss the reports …</Button>
        {post.account !== undefined && (
          <Button work={() => offerBlock('account', post.account as string)}>
            Block its author …
          </Button>
        )}
        <Button work={() => offerBlock('channel', of.channel_id)}>Block the channel …</Button>
      </div>
    </section>
  );
}
