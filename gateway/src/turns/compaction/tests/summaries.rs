//! Who summarises, what they are asked, and what is taken.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::super::plan::{Plan, Trigger, plan};
use super::super::prompt::{HEADINGS, IDENTIFIER_POLICY};
use super::super::provider::Providers;
use super::super::request::SummaryError;
use super::super::stages::{self, Work};
use super::super::summarise::Summarisers;
use super::{Fake, view};
use crate::config::{Compaction, CompactionMode, KeepRecent};
use crate::sessions::hygiene::Message;
use crate::sessions::transcript::line::Kind;
use crate::turns::budget::Budget;
use crate::turns::view::View;

/// Three turns, the last of them parted by the cut.
const TURNS: &str = "u1 a1 u2 a2>c t2<c a3 u4 a4 a5";

struct Given {
    view: View,
    plan: Plan,
    settings: Compaction,
    budget: Budget,
}

fn given(settings: Compaction) -> Given {
    let budget = Budget::new(100_000, &settings);
    Given {
        view: view(TURNS),
        plan: Plan {
            cut: 8,
            first_kept: Some("a5".to_owned()),
            split_from: Some(6),
        },
        settings,
        budget,
    }
}

impl Given {
    fn work(&self) -> Work<'_> {
        Work {
            items: &self.view.items[..self.plan.cut],
            previous_summary: Some("earlier"),
            trigger: Trigger::Threshold.name(),
            budget: self.budget,
        }
    }

    async fn summary(&self, model: &Fake, provider: &Arc<Fake>) -> Result<String, SummaryError> {
        let mut providers = Providers::default();
        providers.register("mine", provider.clone());
        let summarisers = Summarisers {
            model,
            providers: &providers,
            settings: &self.settings,
        };
        summarisers
            .summary(&self.work(), &self.plan, Some("ports"))
            .await
    }
}

fn sound() -> String {
    format!("{}\nnone", HEADINGS.join("\nnone\n"))
}

fn named_provider() -> Compaction {
    Compaction {
        provider: Some("mine".to_owned()),
        ..Compaction::default()
    }
}

#[tokio::test]
async fn a_model_is_asked_for_each_chunk_together_with_the_summary_so_far() {
    let mut given = given(Compaction::default());
    // A threshold of 100: chunks of 50 tokens, and a message has 14.
    given.budget = Budget::new(200, &given.settings);
    let model = Fake::default();
    let summary = stages::summarise(&model, &given.work(), "how").await;
    assert_eq!(summary.as_deref(), Ok("summary 3"));
    let asked = model.asked();
    let earlier: Vec<_> = asked
        .iter()
        .map(|r| r.previous_summary.as_deref())
        .collect();
    assert_eq!(
        earlier,
        [Some("earlier"), Some("summary 1"), Some("summary 2")]
    );
    let messages: Vec<usize> = asked.iter().map(|request| request.messages.len()).collect();
    assert_eq!(messages, [3, 3, 2]);
    assert!(asked.iter().all(|request| request.instructions == "how"));
}

#[tokio::test]
async fn chunks_become_smaller_where_the_model_finds_them_too_long() {
    let given = given(Compaction::default());
    let model = Fake::answering(&[Err(SummaryError::TooLong)]);
    let summary = stages::summarise(&model, &given.work(), "how").await;
    assert!(summary.is_ok());
    let never = Fake::answering(&vec![Err(SummaryError::TooLong); 50]);
    let summary = stages::summarise(&never, &given.work(), "how").await;
    assert_eq!(summary, Err(SummaryError::TooLong));
    assert_eq!(never.asked().len(), 5);
}

#[tokio::test]
async fn in_the_default_mode_one_summary_is_taken_as_it_is() {
    let given = given(Compaction::default());
    let (model, provider) = (Fake::default(), Arc::default());
    let summary = given.summary(&model, &provider).await;
    assert_eq!(summary.as_deref(), Ok("summary 1"));
    let asked = model.asked();
    assert_eq!((asked.len(), provider.asked().len()), (1, 0));
    let instructions = &asked[0].instructions;
    for part in [IDENTIFIER_POLICY, "Dwell on this: ports", HEADINGS[0]] {
        assert!(instructions.contains(part), "{instructions}");
    }
}

#[tokio::test]
async fn safeguard_mode_keeps_the_last_turns_behind_the_summary_and_asks_again_once() {
    let settings = Compaction {
        mode: CompactionMode::Safeguard,
        ..Compaction::default()
    };
    let given = given(settings);
    let (model, provider) = (
        Fake::answering(&[Ok("short"), Ok(&sound())]),
        Arc::default(),
    );
    let summary = given.summary(&model, &provider).await.expect("a summary");
    assert!(summary.starts_with(&sound()), "{summary}");
    let (_, behind) = summary.split_once("## Recent turns\n").expect("turns");
    let (recent, split) = behind
        .split_once("\n\n## Beginning of the current turn\n")
        .expect("the turn that was parted");
    let said = |text: &str| {
        let lines = text
            .lines()
            .map(|line| line.split(' ').take(3).collect::<Vec<_>>().join(" "));
        lines.collect::<Vec<_>>()
    };
    assert_eq!(
        said(recent),
        [
            "- User: u1",
            "- Assistant: a1",
            "- User: u2",
            "- Assistant: a2",
            "- Assistant: a3"
        ]
    );
    assert_eq!(said(split), ["- User: u4", "- Assistant: a4"]);
    let asked = model.asked();
    assert_eq!(asked.len(), 2);
    assert!(
        asked[1]
            .instructions
            .contains("It lacked these headings: ## Goal")
    );
}

#[tokio::test]
async fn a_summary_that_is_not_sound_either_is_taken_and_none_is_looked_at_where_that_is_off() {
    let mut settings = named_provider();
    for (enabled, asked) in [(true, 2), (false, 1)] {
        settings.quality_guard.enabled = enabled;
        let given = given(settings.clone());
        let (model, provider) = (Fake::default(), Arc::<Fake>::default());
        let summary = given.summary(&model, &provider).await.expect("a summary");
        assert!(
            summary.starts_with(&format!("summary {asked}\n\n## Recent")),
            "{summary}"
        );
        assert_eq!((model.asked().len(), provider.asked().len()), (0, asked));
    }
}

#[tokio::test]
async fn a_provider_gets_everything_at_once_and_the_same_instructions() {
    let given = given(named_provider());
    let (model, provider) = (Fake::default(), Arc::new(Fake::answering(&[Ok(&sound())])));
    given.summary(&model, &provider).await.expect("a summary");
    let [request] = &provider.asked()[..] else {
        panic!("one request");
    };
    assert_eq!(request.messages.len(), 8);
    assert_eq!(request.previous_summary.as_deref(), Some("earlier"));
    let json = serde_json::to_value(request).expect("JSON");
    assert_eq!(json["schemaVersion"], 1);
    assert_eq!(json["identifierPolicy"], IDENTIFIER_POLICY);
    assert!(
        json["instructions"]
            .as_str()
            .is_some_and(|text| text.contains("ports"))
    );
}

#[tokio::test]
async fn the_model_summarises_where_a_provider_fails_or_says_nothing() {
    for answer in [
        Err(SummaryError::Failed("exit".to_owned())),
        Err(SummaryError::Empty),
        Ok(" "),
    ] {
        let given = given(named_provider());
        let (model, provider) = (Fake::default(), Arc::new(Fake::answering(&[answer])));
        let summary = given.summary(&model, &provider).await.expect("a summary");
        assert!(summary.starts_with("summary"), "{summary}");
        assert_eq!(provider.asked().len(), 1);
    }
    let unknown = Compaction {
        provider: Some("other".to_owned()),
        ..Compaction::default()
    };
    let model = Fake::default();
    given(unknown)
        .summary(&model, &Arc::default())
        .await
        .expect("a summary");
    assert!(!model.asked().is_empty());
}

#[tokio::test]
async fn what_the_caller_ended_is_passed_on() {
    let late = SummaryError::TimedOut(Duration::from_secs(3));
    for ended in [late, SummaryError::Aborted] {
        let given = given(named_provider());
        let provider = Arc::new(Fake::answering(&[Err(ended.clone())]));
        let model = Fake::default();
        let summary = given.summary(&model, &provider).await;
        assert_eq!(summary, Err(ended.clone()));
        assert_eq!(model.asked().len(), 0);
        // Also where there is a summary already that is not sound.
        let provider = Arc::new(Fake::answering(&[Ok("short"), Err(ended.clone())]));
        assert_eq!(given.summary(&model, &provider).await, Err(ended));
    }
}

/// A conversation of turns with calls, some words each.
fn words() -> impl Strategy<Value = String> {
    let turn = (1_usize..900, 0_usize..4, 1_usize..2_000).prop_map(|(said, calls, output)| {
        let call = |n: usize| format!("a@{n}>@{n} t@{n}*{output}<@{n}");
        let calls: Vec<String> = (0..calls).map(call).collect();
        format!("u@*{said} {} b@", calls.join(" "))
    });
    prop::collection::vec(turn, 0..6).prop_map(|turns| {
        let numbered = turns.iter().enumerate();
        let turns: Vec<String> = numbered
            .map(|(n, turn)| turn.replace("b@", "a@x").replace('@', &format!("{n}-")))
            .collect();
        turns.join(" ")
    })
}

proptest! {
    #[test]
    fn every_message_is_summarised_once_or_kept_whatever_the_model_refuses(
        text in words(),
        window in 200_u64..6_000,
        keep in 0_u64..2_000,
        refused in prop::collection::vec(any::<bool>(), 0..4),
    ) {
        let settings = Compaction {
            keep_recent_tokens: KeepRecent::Explicit(keep),
            ..Compaction::default()
        };
        let budget = Budget::new(window, &settings);
        let view = view(&text);
        let Some(plan) = plan(&view, Trigger::Threshold, &settings, budget) else {
            prop_assert!(view.items.iter().filter(|item| item.kind == Kind::User).count() < 2);
            return Ok(());
        };
        let answers: Vec<_> = refused
            .iter()
            .map(|refused| if *refused { Err(SummaryError::TooLong) } else { Ok("so far") })
            .collect();
        let model = Fake::answering(&answers);
        let work = Work {
            items: &view.items[..plan.cut],
            previous_summary: None,
            trigger: Trigger::Threshold.name(),
            budget,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        prop_assert!(runtime.block_on(stages::summarise(&model, &work, "how")).is_ok());
        let answered = model.asked().into_iter().enumerate();
        let taken = answered.filter(|(at, _)| !refused.get(*at).copied().unwrap_or(false));
        let summarised: Vec<Message> = taken.flat_map(|(_, request)| request.messages).collect();
        let whole: Vec<Message> = view.items.iter().map(|item| item.message.clone()).collect();
        prop_assert_eq!(&summarised[..], &whole[..plan.cut]);
        let first = view.items.get(plan.cut).and_then(|item| item.id.clone());
        prop_assert_eq!(first, plan.first_kept);
    }
}

#[tokio::test]
async fn a_prompt_for_a_summary_fits_the_window_whatever_is_summarised() {
    let settings = Compaction::default();
    let budget = Budget::new(4_000, &settings);
    let view = view("u1*90000 a1*9000>c t1*90000<c a2");
    let plan = plan(&view, Trigger::Manual, &settings, budget).expect("a plan");
    let work = Work {
        items: &view.items[..plan.cut],
        previous_summary: None,
        trigger: Trigger::Manual.name(),
        budget,
    };
    let model = Fake::answering(&[Ok(&"long ".repeat(40_000))]);
    stages::summarise(&model, &work, "how")
        .await
        .expect("a summary");
    let asked = model.asked();
    assert!(asked.len() > 1);
    for request in asked {
        let tokens = crate::turns::tokens::of_text(&request.prompt());
        assert!(tokens <= budget.threshold(), "{tokens}");
        assert!(request.prompt().contains("<conversation>"));
    }
}
